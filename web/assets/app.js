// Where the scripts of a page begin.
import { forgetLeases, openForm, openMenu } from "./act.js";
import "./board.js";
import { openKeys, switchTheme } from "./key.js";
import { onEntries, start } from "./live.js";
import { openPalette } from "./palette.js";

const DOES = {
  form: ({ verb, task, forced }) => openForm(verb, task, forced !== undefined),
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
