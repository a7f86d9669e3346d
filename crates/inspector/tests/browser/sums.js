"use strict";
// A reporter for the last line: what passed, failed and was skipped, and how long it took.

module.exports = async function* sums(source) {
  const began = Date.now();
  const found = { passed: 0, failed: 0, skipped: 0 };
  for await (const { type, data } of source) {
    if (data?.details?.type === "suite") continue;
    if (type === "test:pass") found[data.skip === undefined ? "passed" : "skipped"] += 1;
    else if (type === "test:fail") found.failed += 1;
  }
  const words = Object.entries(found).filter(([word, n]) => n > 0 || word === "passed").map(([word, n]) => `${n} ${word}`);
  yield `${words.join(", ")} in ${((Date.now() - began) / 1000).toFixed(1)}s\n`;
};
