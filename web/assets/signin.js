// A one-time link carries its token behind the `#`, which no browser sends to a server and no log keeps. It is exchanged
// by a form of our own: whoever merely looks at the link, such as a mail program, uses nothing up.
const form = document.getElementById("signin");
const link = location.hash.slice(1);

async function isSignedIn() {
  // The cookie is not sent with a visit that comes from another site; with this question it is.
  const answer = await fetch(form.dataset.then, { headers: { "Onus-Part": "main" }, redirect: "manual" });
  return answer.ok;
}

if (link) {
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.token.value = link;
  form.elements.link.value = "1";
  form.submit();
} else if (!form.querySelector(".refusal") && await isSignedIn().catch(() => false)) {
  location.replace(form.dataset.then);
}
