// A day on the board of a furnished workspace: what was seen broken once, and what people do all day.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { World, accessible, onus, screenshot } from "./support.mjs";
import { LIMITS, furnish } from "./week.mjs";

let world;
let week;
let page;

before(async () => {
  world = await World.start(LIMITS);
  week = furnish(world);
  page = await world.signedIn({ viewport: { width: 1440, height: 900 } });
});
after(() => world.end());

const dialog = () => page.locator("dialog");
const inSight = (target) => target.evaluate((element) => {
  const { top, bottom, left, right } = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth;
});
const noSideways = (target) => target.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

test("the furnished week is on the board, ready and waiting apart, with true counts", async () => {
  await world.open(page, "/board");
  const heads = await page.locator(".head").allInnerTexts();
  assert.deepEqual(heads.map((head) => head.split(/\s*\n\s*|\s{2,}/)[0].replace(/ ?\d+$/, "")), ["Ready", "Waiting", "In progress", "Blocked", "Complete", "Dropped"]);
  assert.match(await page.innerText(".head[data-state=complete]"), new RegExp(`\\b${week.done.length}$`));
  await page.locator(`.cell[data-column=waiting] #card-${week.waiting}`).waitFor();
  await page.mouse.move(0, 0);
  await accessible(page);
  await screenshot(page, "board");
});

test("every page of the week is accessible, and has a picture", async () => {
  const pages = { task: `/tasks/${week.held[0]}`, now: "/now", fleet: "/fleet", effort: "/effort", day: "/effort/day?worker=@forge", milestone: "/milestones/sprint-12",
    audit: "/audit", incident: `/audit/${week.silent}`, "board-lanes": "/board?lanes=worker" };
  for (const [name, path] of Object.entries(pages)) {
    await world.open(page, path);
    await accessible(page);
    await screenshot(page, name);
  }
  const dark = await world.signedIn({ viewport: { width: 1440, height: 900 }, colorScheme: "dark" });
  await world.open(dark, "/board");
  await accessible(dark);
  await screenshot(dark, "board-dark");
  await dark.context().close();
  const phone = await world.signedIn({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  for (const [name, path] of Object.entries({ "board-phone": "/board", "task-phone": pages.task })) {
    await world.open(phone, path);
    await accessible(phone);
    await screenshot(phone, name);
  }
  await phone.context().close();
  await world.open(page, "/board");
});

test("a lease that ran out is red, and its card says so from afar", async () => {
  const late = page.locator(`#card-${week.silent}.late .lease.late`);
  await late.waitFor();
  const [red, ring, words] = await late.evaluate((lease) => {
    const probe = Object.assign(document.createElement("span"), { className: "lease late" });
    document.body.append(probe);
    const bad = getComputedStyle(probe).color;
    probe.remove();
    return [bad, getComputedStyle(lease.querySelector("circle")).stroke, getComputedStyle(lease.querySelector(".words")).color];
  });
  assert.equal(ring, red);
  assert.equal(words, red);
  // A page that was drawn before knows it by its clock alone.
  const edge = await late.evaluate((lease) => {
    lease.closest(".card").classList.remove("late");
    return getComputedStyle(lease.closest(".card")).borderLeftWidth;
  });
  assert.equal(edge, "3px");
});

for (const [name, viewport] of [["1024x768", { width: 1024, height: 768 }], ["390x844", { width: 390, height: 844 }]]) {
  test(`at ${name} the button of Ask is in sight, and no page scrolls sideways`, async () => {
    const small = await world.signedIn({ viewport });
    await world.open(small, "/board");
    const isWhole = (lease) => lease.getBoundingClientRect().right <= lease.closest(".card").getBoundingClientRect().right;
    const heads = await small.locator(".card > .line:first-child").evaluateAll((lines) => lines.map((line) => line.getBoundingClientRect().height));
    assert.ok(Math.max(...heads) < 40, "the head of a card is one line");
    assert.ok(await small.locator(`#card-${week.silent} .lease.late`).evaluate(isWhole), "what is wrong is said whole");
    await small.locator(".tools [data-verb=add]").click();
    assert.ok(await inSight(small.locator("dialog [type=submit]")));
    await small.locator("dialog .more-fields summary").click();
    assert.ok(await inSight(small.locator("dialog [type=submit]")));
    await small.keyboard.press("Escape");
    for (const path of everyPage()) {
      await world.open(small, path);
      assert.equal(await noSideways(small), 0, path);
      const margin = await small.evaluate(() => Math.min(...[...document.querySelectorAll("#main h1:not(.unseen)")].map((head) => head.getBoundingClientRect().left)));
      assert.ok(margin >= 8, `${path}: its title is ${margin} px from the edge`);
      await accessible(small).catch((error) => assert.fail(`${path}: ${error.message}`));
    }
    await small.context().close();
  });
}

/// Every page of the board with something on it.
const everyPage = () => ["/board", "/board?view=list", "/board?lanes=worker", "/now", "/inbox", "/fleet", "/milestones", "/milestones/sprint-12", "/effort",
  "/effort/day?worker=@forge", "/audit", `/audit/${week.silent}`, `/tasks/${week.done[0]}`, `/tasks/${week.silent}`, `/tasks/${week.blocked}`, `/tasks/${week.changed}/diff`];

test("in the dark and on a tablet every page can be used, too", async () => {
  const dark = await world.signedIn({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: "dark" });
  for (const path of everyPage()) {
    await world.open(dark, path);
    await accessible(dark).catch((error) => assert.fail(`${path}: ${error.message}`));
  }
  await dark.context().close();
  const tablet = await world.signedIn({ viewport: { width: 768, height: 1024 }, hasTouch: true, colorScheme: "dark" });
  for (const path of everyPage()) {
    await world.open(tablet, path);
    assert.equal(await noSideways(tablet), 0, path);
    await accessible(tablet).catch((error) => assert.fail(`${path}: ${error.message}`));
  }
  await tablet.context().close();
});

test("a claim is filled in: a place that is free, and who else could", async () => {
  await world.open(page, "/board");
  await page.locator(".cell[data-column=ready] .card [data-do=menu]").first().click();
  await page.getByRole("button", { name: /^Claim →/ }).click();
  await dialog().locator(".takers li").first().waitFor();
  await page.waitForFunction(() => document.querySelector("dialog [name=workstation]").value !== "");
  const offered = await page.locator("#workstations option").evaluateAll((options) => options.map(({ value }) => value));
  assert.ok(offered.includes("desk-ann"), offered.join());
  assert.ok(!offered.includes("desk-mira"), "a workstation in quarantine is not offered");
  assert.ok(!offered.includes("ws-ops"), "nor one that is held");
  await page.keyboard.press("Escape");
});

test("the map's agent is given the task by its button", async () => {
  const id = world.add("Tickets for bicycles", "--type", "frontend", "--priority", "P0");
  world.run("takeover", week.silent, "--force", "--reason", "silent for hours", "--workstation", "desk-ann");
  await world.open(page, `/tasks/${id}`);
  await page.locator("#act-claim").click();
  await dialog().locator("[data-taker='@pixel']").click();
  assert.equal(await dialog().locator("[name=assignee]").inputValue(), "@pixel");
  await dialog().locator("[type=submit]").click();
  await page.locator("#said", { hasText: "is @pixel's now" }).waitFor();
  assert.equal(world.run("show", id).task.assignment.assignee, "@pixel");
});

test("who holds a task elsewhere is not offered what needs the lease", async () => {
  await world.open(page, `/tasks/${week.silent}`);
  await page.locator(".elsewhere").first().waitFor();
  assert.equal(await page.locator("#act-release").isVisible(), false);
  await page.getByRole("button", { name: "Release by force" }).waitFor();
});

test("a title, a label and a priority are changed where they stand", async () => {
  const id = world.add("Tickest for dogs", "--priority", "P3");
  await world.open(page, `/tasks/${id}`);
  await page.locator("#edit-title").click();
  await page.getByRole("textbox", { name: "Title" }).fill("Tickets for dogs");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Tickets for dogs" }).waitFor();
  await page.locator("#edit-priority").click();
  await page.getByRole("combobox", { name: "Priority" }).selectOption("P1");
  await page.locator("#edit-priority", { hasText: "P1" }).waitFor();
  await page.locator("#edit-tags").click();
  await page.getByRole("textbox", { name: "Labels" }).fill("animals\nfares");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("#edit-tags .chip", { hasText: "animals" }).waitFor();
  await page.locator("#edit-depends_on").click();
  await page.getByRole("textbox", { name: "Waits for" }).fill("API-9999");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".edit-line .refusal", { hasText: "API-9999" }).waitFor();
  await page.keyboard.press("Escape");
  const { task } = world.run("show", id);
  assert.deepEqual([task.title, task.priority, task.tags], ["Tickets for dogs", "P1", ["animals", "fares"]]);
  await page.locator("[data-note] textarea").fill("They travel **half price**");
  await page.getByRole("button", { name: "Note", exact: true }).click();
  await page.locator(".note strong", { hasText: "half price" }).waitFor();
  await accessible(page);
});

test("several tasks are changed at once", async () => {
  const ids = ["One of many", "Two of many"].map((title) => world.add(title, "--sprint", "s99"));
  await world.open(page, "/board?view=list&sprint=s99");
  for (const id of ids) await page.getByLabel(`Pick ${id}`).check();
  await page.getByLabel("Priority of all").selectOption("P1");
  await page.locator("#said", { hasText: "2 tasks now P1" }).waitFor();
  for (const id of ids) assert.equal(world.run("show", id).task.priority, "P1");
  await accessible(page);
});

test("the list is sorted, grouped and kept as a view", async () => {
  await world.open(page, "/board?view=list");
  await page.getByRole("link", { name: "Title" }).click();
  await page.waitForURL(/sort=title/);
  assert.equal(await page.getByRole("link", { name: "Clear" }).count(), 0, "nothing is held back");
  await world.live(page);
  const titles = await page.locator(".list td .title").allInnerTexts();
  assert.deepEqual(titles, titles.toSorted((one, other) => (one.toLowerCase() < other.toLowerCase() ? -1 : 1)));
  await page.getByLabel("Group").selectOption("holder");
  await page.waitForURL(/group=holder/);
  await page.locator("tr.group", { hasText: "@forge" }).waitFor();
  await page.getByRole("button", { name: "Save view" }).click();
  await dialog().getByLabel("Name").fill("By holder");
  await dialog().getByRole("button", { name: "Save" }).click();
  await page.locator("#shared [aria-current]", { hasText: "By holder" }).waitFor();
  await world.open(page, "/board");
  await page.getByRole("link", { name: "By holder" }).click();
  await page.waitForURL(/group=holder/);
  await world.live(page);
  await page.mouse.move(0, 0);
  await screenshot(page, "list");
});

test("a view is the team's: another browser sees it come and go, and the command line lists by it", async () => {
  const other = await world.signedIn();
  await world.open(other, "/board");
  await other.getByRole("link", { name: "By holder" }).waitFor();
  await world.open(page, "/board?tag=payments&priority=P1");
  await page.getByRole("button", { name: "Save view" }).click();
  await dialog().getByLabel("Name").fill("Payments, urgent");
  await dialog().getByRole("button", { name: "Save" }).click();
  await other.getByRole("link", { name: "Payments, urgent" }).waitFor();
  const listed = world.run("list", "--view", "Payments, urgent", "--limit", "500").tasks;
  assert.ok(listed.length > 0 && listed.every(({ tags, priority }) => tags.includes("payments") && priority === "P1"));
  // One's own stays in this browser.
  await world.open(page, "/board?role=docs");
  await page.getByRole("button", { name: "Save view" }).click();
  await dialog().getByLabel("Name").fill("Only mine");
  await dialog().getByLabel("For everybody").uncheck();
  await dialog().getByRole("button", { name: "Save" }).click();
  await page.locator("#saved", { hasText: "Only mine" }).waitFor();
  await accessible(page);
  assert.ok(!world.run("view", "list").views.some(({ name }) => name === "Only mine"));
  await page.getByRole("button", { name: "Remove the view Only mine" }).click();
  await page.locator("#saved", { hasText: "Only mine" }).waitFor({ state: "hidden" });
  await world.open(page, "/board?priority=P1&tag=payments");
  await page.getByRole("button", { name: "Remove the view Payments, urgent" }).click();
  await other.getByRole("link", { name: "Payments, urgent" }).waitFor({ state: "detached" });
  await other.context().close();
});

test("a milestone's day is moved where it stands, and a late one is red", async () => {
  await world.open(page, "/milestones/sprint-12");
  await page.locator(".target-of .badge", { hasText: "days left" }).waitFor();
  await page.locator(".chart .target").waitFor({ state: "attached" });
  await page.locator("#edit-target").click();
  await page.getByLabel("Target date").fill("2026-01-05");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".target-of .badge.bad", { hasText: "late" }).waitFor();
  assert.equal(world.run("milestone", "show", "sprint-12").target, "2026-01-05");
  await accessible(page);
  await world.open(page, "/milestones");
  await page.locator("#milestone-sprint-12 .badge.bad", { hasText: "late" }).waitFor();
  await page.locator("[data-verb=add_milestone]").click();
  await dialog().getByLabel("Name, such as").fill("sprint-13");
  await dialog().getByLabel("Target date").fill("2999-12-31");
  await dialog().getByLabel("All tasks of this sprint").fill("s13");
  await dialog().getByRole("button", { name: "Add a milestone" }).click();
  await page.locator("#milestone-sprint-13", { hasText: "2999-12-31" }).waitFor();
});

test("Effort tells what the work cost, by day and by task, and offers approval of finished periods only", async () => {
  await world.open(page, "/effort");
  await page.locator("section[aria-labelledby=cost] .chart rect").first().waitFor();
  const first = await page.locator("section[aria-labelledby=by-task] tbody tr").first().innerText();
  const costs = (await page.locator("section[aria-labelledby=by-task] tbody td:last-child").allInnerTexts()).map((cost) => Number.parseFloat(cost) || 0);
  assert.deepEqual(costs, costs.toSorted((one, other) => other - one));
  const { task } = world.run("show", first.match(/API-\d+/)[0]);
  assert.ok(first.includes(task.title), first);
  assert.equal(await page.getByRole("button", { name: /^Approve the time/ }).count(), 0, "the month goes on");
  const day = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);
  await world.open(page, `/effort?period=${day}`);
  await page.getByRole("button", { name: "Approve the time of @forge" }).click();
  await page.locator("#worker-\\@forge .badge.good", { hasText: "approved by @ann" }).waitFor();
});

test("a search finds what stands in bodies and notes, and what came complete from elsewhere", async () => {
  const id = world.add("Quiet coaches", "--body", "The **zeppelin** clause of the tariff");
  world.run("note", id, "see the marmalade ledger");
  const file = `${world.directory}/history.jsonl`;
  writeFileSync(file, JSON.stringify({ title: "Paper tickets retired", state: "complete", resolution: "gone since 2019" }));
  world.run("import", "--format", "jsonl", file);
  for (const [words, found] of [["zeppelin", "Quiet coaches"], ["MARMALADE quiet", "Quiet coaches"], ["paper retired", "Paper tickets retired"]]) {
    await world.open(page, `/board?q=${encodeURIComponent(words)}`);
    assert.deepEqual(await page.locator(".card .title").allInnerTexts(), [found], words);
  }
  await world.open(page, "/board?q=100%25_no");
  assert.equal(await page.locator(".card").count(), 0);
  // The palette finds what is on no page.
  await world.open(page, "/now");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("zeppelin");
  await page.locator("#found [aria-selected=true]", { hasText: "Quiet coaches" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(`${world.url}/tasks/${id}`);
});

test("a review is not given by one click", async () => {
  const held = week.held.find((id) => world.run("show", id).task.assignment.assignee !== "@ann");
  await world.open(page, `/tasks/${held}`);
  await page.locator("#act-review").click();
  await dialog().locator("[type=submit]").click();
  await dialog().locator(".refusal", { hasText: "Fill in: Verdict" }).waitFor();
  assert.equal(world.run("show", held).reviews?.length ?? 0, 0);
  await page.keyboard.press("Escape");
});

test("the bell counts what waits, and a question makes it ring without a reload", async () => {
  await world.open(page, "/board");
  const bell = page.locator("#bell .count");
  const number = async () => Number.parseInt((await bell.textContent()) || "0", 10);
  await page.waitForFunction(() => /waits|waiting/.test(document.getElementById("bell").getAttribute("aria-label")));
  const before = await number();
  assert.equal(before, Math.min(world.run("inbox").items.length, 500));
  const id = world.add("Which platform?");
  world.run("workstation", "add", "desk-bell");
  const token = world.run("claim", id, "--as", "@mira", "--workstation", "desk-bell").lease.token;
  world.run("block", id, "--as", "@mira", "--lease", token, "--on", "person:@ann", "--note", "Seven or eight?");
  await page.waitForFunction((before) => Number.parseInt(document.querySelector("#bell .count").textContent, 10) > before, before);
  await page.locator("#bell").click();
  await page.waitForURL(/\/inbox$/);
  await page.locator("[data-kind=question]", { hasText: "Seven or eight?" }).waitFor();
  await accessible(page);
});

test("several tasks go to whom the map names, and where nobody can, the reason stands there", async () => {
  const free = world.add("Compare fares by bicycle", "--type", "frontend", "--sprint", "s77");
  const second = world.add("Compare fares by boat", "--type", "frontend", "--sprint", "s77");
  const nobody = world.add("Compare fares by balloon", "--type", "aviation", "--sprint", "s77");
  for (const { id } of world.run("list", "--assignee", "@pixel").tasks) world.run("release", id, "--force", "--reason", "make room");
  await world.open(page, "/board?view=list&sprint=s77");
  for (const id of [free, second, nobody]) await page.getByLabel(`Pick ${id}`).check();
  await page.locator("[data-bulk=assign]").click();
  await dialog().getByText("@pixel in ws-web-1").waitFor();
  assert.match(await dialog().locator(`[data-task=${second}]`).innerText(), new RegExp(`ws-web-1 gets ${free}`));
  assert.match(await dialog().locator(`[data-task=${nobody}]`).innerText(), /aviation/);
  await accessible(page);
  await dialog().getByRole("button", { name: "Assign" }).click();
  await page.locator("#said", { hasText: "1 task assigned" }).waitFor();
  assert.equal(world.run("show", free).task.assignment.assignee, "@pixel");
  assert.equal(world.run("show", second).task.assignment, null);
});

test("columns of the list are chosen, and stay chosen with another filter", async () => {
  await world.open(page, "/board?view=list");
  const heads = () => page.locator(".list thead th").allInnerTexts();
  assert.ok((await heads()).some((head) => /Sprint/.test(head)));
  await page.locator("#columns summary").click();
  await page.locator("#columns").getByRole("link", { name: "Hide Sprint" }).click();
  await page.waitForURL(/columns=/);
  await page.waitForFunction(() => ![...document.querySelectorAll(".list thead th")].some((head) => head.textContent.includes("Sprint")));
  await page.getByLabel("Priority").first().selectOption("P1");
  await page.waitForURL(/priority=P1/);
  assert.match(page.url(), /columns=/);
  assert.ok(!(await heads()).some((head) => /Sprint/.test(head)));
  assert.equal(await page.locator(".list tbody tr[data-task]").first().locator("td").count(), (await heads()).length);
  await accessible(page);
  await world.open(page, "/board?view=list&columns=nonsense");
  await page.locator("#main", { hasText: "none of priority, id" }).waitFor();
});

test("a milestone shows how it came together, day by day", async () => {
  await world.open(page, "/milestones/sprint-12");
  const { tasks } = world.run("milestone", "show", "sprint-12");
  const [done, all] = [tasks.filter(({ state }) => state === "complete").length, tasks.filter(({ state }) => state !== "dropped").length];
  await page.getByRole("img", { name: `Burn-up: ${done} of ${all} tasks are complete` }).waitFor();
});

test("the name is a menu, and only its last line signs out", async () => {
  await world.open(page, "/board");
  await page.locator("#account summary").click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  assert.match(page.url(), /board/);
  await accessible(page);
  await page.locator("#main").click({ position: { x: 5, y: 300 } });
  await page.getByRole("button", { name: "Sign out" }).waitFor({ state: "hidden" });
});

test("Week and Day of Effort are today's", async () => {
  await world.open(page, "/effort");
  const today = new Date().toISOString().slice(0, 10);
  assert.match(await page.getByRole("link", { name: "Day", exact: true }).getAttribute("href"), new RegExp(today));
});

test("Now tells what happened since I last looked", async () => {
  const fresh = await world.signedIn();
  await world.open(fresh, "/now");
  assert.equal(await fresh.locator("#last-look").isVisible(), false, "nobody has looked yet");
  await world.open(fresh, "/board");
  await fresh.evaluate(() => localStorage.setItem("onus.looked", String(Date.now() - 90 * 60_000)));
  await world.open(fresh, "/now");
  await fresh.getByRole("link", { name: "since I last looked" }).click();
  await fresh.waitForURL(/since=9[01]m/);
  await fresh.context().close();
});

test("what is stuck has its button", async () => {
  await world.open(page, "/now");
  await page.getByRole("button", { name: `Unblock: ${week.blocked}` }).click();
  await dialog().getByRole("button", { name: "Unblock" }).click();
  await page.locator("section[aria-labelledby=stuck] .id", { hasText: week.blocked }).waitFor({ state: "detached" });
  assert.equal(world.run("show", week.blocked).task.state, "open");
});

test("what waits for a dropped task is told to wait for ever", async () => {
  const lost = world.add("Steam engines");
  const waiting = world.add("Coal for steam engines", "--depends-on", lost);
  world.run("drop", lost, "--reason", "no rails for them");
  await world.open(page, "/now");
  const row = page.locator("section[aria-labelledby=stuck] li", { hasText: waiting });
  await row.getByText("waits for ever").waitFor();
  assert.match(await row.innerText(), new RegExp(`waits for ${lost}, which was dropped`));
  await row.getByRole("button", { name: "Remove the dependency" }).click();
  await row.waitFor({ state: "detached" });
  assert.deepEqual(world.run("show", waiting).task.depends_on, []);
});

test("what work waits for is asked for in words", async () => {
  world.run("workstation", "add", "desk-block");
  const id = world.add("Tickets for parrots");
  await world.open(page, `/tasks/${id}`);
  await page.locator("#act-claim").click();
  await page.getByLabel("Where you will work").fill("desk-block");
  await dialog().locator("[type=submit]").click();
  await page.locator("#act-block").click();
  await dialog().getByLabel("Kind of thing").selectOption({ label: "a person's answer" });
  await dialog().getByLabel("What it waits for").fill("@mira");
  await accessible(page);
  await dialog().locator("[type=submit]").click();
  await page.locator(".state.blocked").first().waitFor();
  assert.equal(world.run("show", id).task.blocked_on, "person:@mira");
  world.run("release", id, "--force", "--reason", "make room");
});

test("a refusal in a dialog tells people what to do, and programs in its details", async () => {
  const id = world.add("Tickets for hedgehogs", "--type", "docs");
  await world.open(page, `/tasks/${id}`);
  await page.locator("#act-claim").click();
  await page.getByLabel("Where you will work").fill("nowhere");
  await page.getByLabel("For somebody else").fill("@forge");
  await dialog().locator("[type=submit]").click();
  await dialog().locator(".refusal strong").waitFor();
  const [said, kept] = await dialog().locator(".refusal").evaluate((refusal) => {
    const details = refusal.querySelector("details").textContent;
    const copy = refusal.cloneNode(true);
    copy.querySelector("details").remove();
    return [copy.textContent, details];
  });
  assert.match(said, /@forge/);
  assert.doesNotMatch(said, /\bonus [a-z]|--[a-z]|[a-z]_[a-z]/);
  assert.match(kept, /workstation_unknown/);
  assert.match(kept, /\bonus [a-z]/);
  await page.keyboard.press("Escape");
});

test("the criteria of the work are changed where they stand: its checks and the whole that it is part of", async () => {
  const [whole, part] = [world.add("Tickets for whales"), world.add("Tickets for small whales")];
  await world.open(page, `/tasks/${part}`);
  await page.locator("#edit-parent").click();
  await page.getByRole("textbox", { name: "Part of" }).fill(whole);
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("#edit-parent", { hasText: whole }).waitFor();
  await page.locator("#edit-checks").click();
  await page.getByRole("textbox", { name: "Checks" }).fill("make whales\nmake test");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("#h-checks").waitFor();
  const { task } = world.run("show", part);
  assert.deepEqual([task.parent, task.checks.map(({ command }) => command)], [whole, ["make whales", "make test"]]);
  await accessible(page);
});

/// Codes, JSON and flags are for programs: people find them under "details", if at all.
test("no page speaks in codes, JSON or flags outside of details", async () => {
  const found = [];
  const forced = world.add("Against the rules", "--type", "frontend");
  world.run("workstation", "add", "desk-forced");
  world.run("claim", forced, "--for", "@quill", "--workstation", "desk-forced", "--force", "--reason", "everybody is away");
  const more = ["forced", "refusals", "grants", "exceptions", "anomalies"].map((show) => `/audit?show=${show}`);
  const today = new Date().toISOString().slice(0, 10);
  for (const path of [...everyPage(), ...more, `/tasks/${forced}`, `/audit/${forced}`, "/tasks/API-9999", "/board?lanes=nonsense", `/effort?period=${today}`]) {
    await world.open(page, path);
    const raw = await page.evaluate(() => {
      const shown = document.getElementById("main").cloneNode(true);
      // What people and agents wrote is theirs; the lines of a diff are files.
      for (const hidden of shown.querySelectorAll("details:not(.file), .words-of, .note, pre")) hidden.remove();
      const forms = [...document.querySelectorAll("template[data-form]")].map((form) => form.content.textContent);
      const labels = [...shown.querySelectorAll("[aria-label], [title], [placeholder]")].flatMap((one) => ["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name) ?? ""));
      const text = [shown.textContent, ...forms, ...labels].join("\n");
      return [...(text.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? []), ...(text.match(/\{"[a-z_]+":/g) ?? []), ...(text.match(/(?:^|\s)--[a-z][a-z-]+/g) ?? []),
        ...(text.match(/\d{4}-\d\d-\d\dT\d\d:\S*/g) ?? []), ...(text.match(/\brouting\[|\b(?:external|person|task):\S/g) ?? []),
        ...(location.pathname.startsWith("/audit") ? (text.match(/\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12,}\b/g) ?? []) : [])];
    });
    found.push(...raw.map((word) => `${path}: ${word}`));
  }
  assert.deepEqual(found, []);
});

/// Goes on by Tab until the focus is on what has this name.
async function reach(of, name) {
  for (let n = 0; n < 200; n++) {
    const at = await of.evaluate(() => {
      const { activeElement: here } = document;
      return here.getAttribute("aria-label") ?? here.closest("label")?.querySelector("span")?.textContent ?? here.textContent.trim();
    });
    if (at === name) return;
    await of.keyboard.press("Tab");
  }
  assert.fail(`${name} is not reached`);
}

test("work is given to whom the map names by keyboard alone", async () => {
  const id = world.add("Tickets by telegram", "--type", "docs", "--priority", "P0");
  for (const { id: held } of world.run("list", "--assignee", "@quill").tasks) world.run("release", held, "--force", "--reason", "make room");
  await world.open(page, `/tasks/${id}`);
  await reach(page, "Claim");
  await page.keyboard.press("Enter");
  await dialog().locator("[data-taker='@quill']").waitFor();
  await reach(page, "@quill in ws-docs");
  await page.keyboard.press("Enter");
  // The focus goes on to the button that does it.
  await page.keyboard.press("Enter");
  await page.locator("#said", { hasText: "is @quill's now" }).waitFor();
  assert.equal(world.run("show", id).task.assignment.workstation, "ws-docs");
});

test("ask, assign, review and land by keyboard alone", async () => {
  const tree = world.run("workstation", "add", "desk-keys", "--kind", "worktree").workstation.path;
  await world.open(page, "/board");
  await page.keyboard.press("c");
  await page.locator("dialog [name=title]:focus").waitFor();
  await page.keyboard.type("Ride by keyboard");
  await page.keyboard.press("Enter");
  // The palette finds what is on the page.
  await page.locator("[id^=card-]", { hasText: "Ride by keyboard" }).waitFor();
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  await page.keyboard.type("ride by keyboard");
  await page.locator("#found li", { hasText: /API-\d+ Ride by keyboard/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/tasks\/API-\d+$/);
  await world.live(page);
  const id = page.url().split("/").pop();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("claim");
  await page.keyboard.press("Enter");
  // A place that is free is filled in; this one wants another.
  await page.waitForFunction(() => document.querySelector("dialog [name=workstation]")?.value);
  await reach(page, "Where you will work");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("desk-keys");
  await page.keyboard.press("Enter");
  await page.locator("#act-complete").waitFor();
  // The work itself is done elsewhere.
  const lease = await page.evaluate((id) => localStorage.getItem(`onus.lease.${id}`), id);
  const env = { ...process.env, ONUS_AS: "@ann", ONUS_LEASE: lease };
  writeFileSync(join(tree, "keys.txt"), "one\ntwo\n");
  for (const args of [["add", "-A"], ["commit", "-q", "-m", "Ride"]]) execFileSync("git", args, { cwd: tree, env, stdio: "pipe" });

  const mira = await (await world.browser()).newPage();
  world.as = "@mira";
  await mira.goto(world.link("@mira"));
  world.as = undefined;
  await mira.waitForURL(`${world.url}/*`, { waitUntil: "domcontentloaded" });
  await world.open(mira, `/tasks/${id}/diff`);
  await reach(mira, "Comment on line 2 of keys.txt");
  await mira.keyboard.press("Enter");
  await mira.keyboard.type("two, at last");
  await reach(mira, "Comment");
  await mira.keyboard.press("Enter");
  await mira.locator("tr.comment", { hasText: "two, at last" }).waitFor();
  await mira.evaluate(() => document.activeElement.blur());
  await reach(mira, "Approve");
  await mira.keyboard.press("Enter");
  await mira.keyboard.type("good as it is");
  await reach(mira, "Approve");
  await mira.keyboard.press("Enter");
  await mira.locator("#said", { hasText: `${id} is approved` }).waitFor();
  await mira.context().close();

  assert.doesNotMatch(execFileSync("git", ["log", "--format=%s", "main"], { cwd: world.directory, encoding: "utf8" }), /^Ride$/m);
  await world.open(page, `/tasks/${id}/diff`);
  await reach(page, "Land");
  await page.keyboard.press("Enter");
  await page.locator("dialog [name=resolution]").waitFor();
  await page.keyboard.type("ridden");
  await reach(page, "Complete");
  await page.keyboard.press("Enter");
  await page.locator("article.diff .state.complete").waitFor();
  const { task, reviews } = world.run("show", id);
  assert.deepEqual([task.state, reviews.map(({ by, verdict }) => [by, verdict])], ["complete", [["@mira", "approved"]]]);
  assert.match(execFileSync("git", ["log", "--format=%s", "main"], { cwd: world.directory, encoding: "utf8" }), /^Ride$/m);
});

test("with a second project the board shows each alone, and an ask goes to the one that is looked at", async () => {
  await world.open(page, "/board");
  assert.equal(await page.getByLabel("Project").count(), 0);
  await page.locator(".tools [data-verb=add]").click();
  assert.equal(await dialog().getByLabel("Project").count(), 0, "there is only one");
  await page.keyboard.press("Escape");
  world.run("init", "--project", "WEB");
  world.run("add", "Paint the station", "--project", "WEB");
  await world.open(page, "/board");
  await page.getByLabel("Project").selectOption("WEB");
  await page.waitForURL(/project=WEB/);
  await page.locator(".card .title", { hasText: "Paint the station" }).waitFor();
  assert.equal(await page.locator(".card").count(), 1);
  await world.live(page);
  await page.keyboard.press("c");
  assert.equal(await dialog().getByLabel("Project").inputValue(), "WEB");
  await page.keyboard.type("Sweep the station");
  await page.keyboard.press("Enter");
  await page.locator("#card-WEB-2 .title", { hasText: "Sweep the station" }).waitFor();
  await accessible(page);
});
