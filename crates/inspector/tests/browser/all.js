"use strict";
// All tests, in one process: they share a browser and the stores that they only read.

const { after, afterEach } = require("node:test");
const { closeBrowser, closeWindows } = require("./browser.js");
const { stopAll } = require("./store.js");

require("./pages.js");
require("./failures.js");
require("./keyboard.js");
require("./looks.js");
require("./links.js");
require("./live.js");
require("./hostile.js");
require("./api.js");

afterEach(closeWindows);

after(async () => {
  await closeBrowser();
  stopAll();
});
