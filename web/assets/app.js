// Where the scripts of a page begin.
import { forgetLeases, markLeases, openForm, openMenu, tick } from "./act.js";
import "./bell.js";
import { removeView, saveView } from "./board.js";
import "./diff.js";
import { openEdit } from "./edit.js";
import { openKeys, switchTheme } from "./key.js";
import { onEntries, start } from "./live.js";
import "./output.js";
import { openPalette } from "./palette.js";
import "./pick.js";
import "./report.js";

const DOES = {
  form: ({ verb, task, forced, commit }) => openForm(verb, task, { forced: forced !== undefined, commit }),
  edit: (_, button) => openEdit(button),
  tick: ({ task, criterion, withdrawn }) => tick(task, criterion, withdrawn !== undefined),
  menu: ({ task }) => openMenu(task),
  palette: openPalette,
  save: saveView,
  unsave: ({ name, own }) => removeView(name, own !== undefined),
  keys: openKeys,
  theme: switchTheme,
};

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-do]");
  DOES[button?.dataset.do]?.(button.dataset, button);
});

onEntries(forgetLeases);
markLeases();
start();
