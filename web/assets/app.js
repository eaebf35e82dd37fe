// Where the scripts of a page begin.
import { forgetLeases, openForm, openMenu } from "./act.js";
import "./board.js";
import { openKeys, switchTheme } from "./key.js";
import { onEntries, start } from "./live.js";
import { openPalette } from "./palette.js";
import "./report.js";

const DOES = {
  form: ({ verb, task, forced, commit }) => openForm(verb, task, { forced: forced !== undefined, commit }),
  menu: ({ task }) => openMenu(task),
  palette: openPalette,
  keys: openKeys,
  theme: switchTheme,
};

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-do]");
  DOES[button?.dataset.do]?.(button.dataset);
});

onEntries(forgetLeases);
start();
