// Before anything is painted: the viewer's choice of light or dark, where there is one.
const theme = localStorage.getItem("onus.theme");
if (theme) document.documentElement.dataset.theme = theme;
