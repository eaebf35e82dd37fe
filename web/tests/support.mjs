// A server of its own on a temporary store, browsers that look at it, and what every page must keep.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const here = new URL(".", import.meta.url).pathname;
const root = join(here, "../..");
const packages = process.env.ONUS_BROWSER_PACKAGES ?? execFileSync(join(here, "browser"), { encoding: "utf8" }).trim();
const require = createRequire(join(packages, "/"));
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const onus = process.env.ONUS_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/onus");

const FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--no-first-run"];

/// Chromium without the windows of a desktop takes two thirds of the processor time; the whole one will do where there is no other.
const CHROMIUM = process.env.CHROMIUM ??
  ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find((path) => existsSync(path));

/// How long a browser waits for what never comes, in milliseconds.
const PATIENCE = 120_000;

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/// A store with one person, @ann, in a repository of its own, and a server for it; the settings are text of an `onus.yaml`.
export class World {
  static async start(settings) {
    const world = new World();
    world.directory = mkdtempSync(join(tmpdir(), "onus-board-"));
    const git = (...args) => execFileSync("git", args, { cwd: world.directory, stdio: "ignore" });
    git("init", "-q", "-b", "main");
    git("config", "user.name", "Ann");
    git("config", "user.email", "ann@example.org");
    git("commit", "-q", "--allow-empty", "-m", "begin");
    if (settings) writeFileSync(join(world.directory, "onus.yaml"), settings);
    world.run("init", "--project", "API");
    world.port = await freePort();
    world.hosts = new Set([`127.0.0.1:${world.port}`]);
    await world.serve();
    return world;
  }

  /// The command line, as @ann unless somebody else is named. Its document.
  run(...args) {
    const env = { ...process.env, ONUS_AS: this.as ?? "@ann", NO_COLOR: "1" };
    delete env.ONUS_STORE;
    const options = { cwd: this.directory, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };
    const said = execFileSync(onus, ["--json", ...args], options);
    return said.trim() ? JSON.parse(said) : {};
  }

  add(title, ...more) {
    return this.run("add", title, ...more).task.id;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async serve() {
    this.server = spawn(onus, ["serve", "--listen", `127.0.0.1:${this.port}`, "--log", "quiet"],
      { cwd: this.directory, env: { ...process.env, ONUS_AS: "@ann" }, stdio: ["ignore", "pipe", "inherit"] });
    // The line itself is the sign that it accepts.
    await new Promise((resolve, reject) => {
      createInterface({ input: this.server.stdout }).once("line", resolve);
      this.server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
  }

  async stop(signal = "SIGTERM") {
    const ended = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill(signal);
    await ended;
  }

  /// `onus board` on the same store: the link that it prints, and how to end it.
  async ownBoard() {
    const child = spawn(onus, ["board", "--no-open", "--as", "@ann"], { cwd: this.directory, stdio: ["ignore", "pipe", "inherit"] });
    const link = await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", resolve);
      child.once("exit", (code) => reject(new Error(`onus board ended with ${code}`)));
    });
    this.hosts.add(new URL(link).host);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    return { link, end: () => (child.kill("SIGINT"), ended) };
  }

  link(handle = "@ann") {
    return this.run("worker", "token", "link", handle, "--server", this.url).url;
  }

  token(handle, ...more) {
    return this.run("worker", "token", "add", handle, ...more).secret;
  }

  /// A browser that nobody has signed in to; what breaks a promise is noted.
  async browser(options = {}) {
    this.chromium ??= await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    const context = await this.chromium.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    // A page may take long on a machine that does much else: a wait that fails is to tell of the board, not of its neighbours.
    context.setDefaultTimeout(PATIENCE);
    context.broken = [];
    context.on("request", (request) => {
      const { protocol, host } = new URL(request.url());
      if (!["data:", "blob:"].includes(protocol) && !this.hosts.has(host)) context.broken.push(`outside: ${request.url()}`);
    });
    context.on("console", (message) => {
      if (/content security policy/i.test(message.text())) context.broken.push(message.text());
    });
    context.on("weberror", (error) => context.broken.push(String(error.error())));
    context.on("dialog", (dialog) => {
      context.broken.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    (this.contexts ??= []).push(context);
    return context;
  }

  /// A page of a browser that is signed in by a one-time link.
  async signedIn(options) {
    const page = await (await this.browser(options)).newPage();
    await page.goto(this.link());
    await page.waitForURL(`${this.url}/*`, { waitUntil: "domcontentloaded" });
    await this.live(page);
    return page;
  }

  async open(page, path) {
    await page.goto(this.url + path);
    await this.live(page);
  }

  /// Waits until changes arrive by themselves.
  live(page) {
    return page.waitForSelector("#live[data-state=live]");
  }

  /// Ends everything, and fails where a page broke one of the promises that hold for all of them.
  async end() {
    const broken = (this.contexts ?? []).flatMap((context) => context.broken);
    await this.chromium?.close();
    if (this.server.exitCode === null) await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
    assert.deepEqual(broken, []);
  }
}

/// Accessibility: nothing serious.
export async function accessible(page) {
  await page.evaluate(axeSource);
  const rules = { "target-size": { enabled: true }, "landmark-unique": { enabled: true } };
  const found = await page.evaluate((rules) => axe.run(document, { resultTypes: ["violations"], rules }), rules);
  const serious = found.violations.filter(({ impact, id }) => ["serious", "critical"].includes(impact) || id in rules);
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(told, []);
}

/// A picture for the documentation, where it is asked for.
export async function screenshot(page, name) {
  const directory = process.env.UPDATE_SCREENSHOTS ? join(root, "docs/screenshots") : join(tmpdir(), "onus-screenshots");
  mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: join(directory, `${name}.png`) });
}
