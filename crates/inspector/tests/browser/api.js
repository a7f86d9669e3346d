"use strict";
// The description of the API, and what pages ask of it. Comes last: it looks at what all tests made pages ask.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { asked } = require("./browser.js");
const { examples } = require("./stores.js");

/** Every `$ref` below a value. */
function references(value) {
  if (Array.isArray(value)) return value.flatMap(references);
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, one]) => (key === "$ref" ? [one] : references(one)));
}

test("the API's description is OpenAPI 3.1", async () => {
  const { server } = await examples();
  const api = await server.api("openapi.json");
  assert.match(api.openapi, /^3\.1\.\d+$/);
  assert.ok(api.info.title && api.info.version && Object.keys(api.paths).length > 0);
  const names = new Set();
  for (const [path, methods] of Object.entries(api.paths)) {
    assert.match(path, /^\/api\/v1\//);
    assert.deepEqual(Object.keys(methods), ["get"], path);
    const { operationId, parameters = [], responses } = methods.get;
    assert.ok(operationId && !names.has(operationId), `${path}: ${operationId}`);
    names.add(operationId);
    const inPath = parameters.filter((one) => one.in === "path");
    assert.deepEqual(inPath.map((one) => one.name).sort(), [...path.matchAll(/\{(\w+)\}/g)].map((part) => part[1]).sort(), path);
    assert.ok(inPath.every((one) => one.required), path);
    assert.ok(parameters.every((one) => one.name && one.schema && ["path", "query"].includes(one.in)), path);
    assert.equal(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size, parameters.length, path);
    for (const [status, answer] of Object.entries(responses)) {
      assert.match(status, /^([1-5]\d\d|[1-5]XX|default)$/, path);
      assert.ok(answer.description != null, `${path} ${status}`);
      for (const [kind, { schema }] of Object.entries(answer.content ?? {})) assert.ok(/^\w+\/[\w.+-]+$/.test(kind) && schema, `${path} ${status}`);
    }
    assert.ok(Object.keys(responses).some((status) => status.startsWith("2")), path);
  }
  for (const reference of references(api)) {
    const found = reference.replace(/^#\//, "").split("/").reduce((place, key) => place?.[key], api);
    assert.ok(reference.startsWith("#/") && found, reference);
  }
});

test("pages ask only what is described", async () => {
  const { server } = await examples();
  const api = await server.api("openapi.json");
  const routes = Object.entries(api.paths).map(([path, { get }]) => ({
    path,
    pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]+")}$`),
    query: new Set((get.parameters ?? []).filter((one) => one.in === "query").map((one) => one.name)),
  }));
  const used = new Set();
  for (const one of asked) {
    const url = new URL(one, server.address);
    const route = routes.find(({ pattern }) => pattern.test(url.pathname));
    assert.ok(route, `${one} is not described`);
    used.add(route.path);
    for (const name of url.searchParams.keys()) assert.ok(route.query.has(name), `${one}: ${name} is not described`);
  }
  for (const path of ["/api/v1/sessions", "/api/v1/sessions/{id}", "/api/v1/sessions/{id}/payloads/{ref}", "/api/v1/search", "/api/v1/events"]) {
    assert.ok(used.has(path), `no page asked ${path}`);
  }
});
