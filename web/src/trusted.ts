// SPDX-License-Identifier: Apache-2.0
// The one policy of Trusted Types: which scripts may be loaded. No other sink is used.

const kScripts = new Set(['/stream-worker.js']);

interface Policy { createScriptURL(url: string): string }
interface Factory { createPolicy(name: string, rules: Policy): Policy }

const rules: Policy = {
  createScriptURL: (url) => {
    if (!kScripts.has(url)) throw new TypeError(`not a script of Clew: ${url}`);
    return url;
  },
};
const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
const policy = factory ? factory.createPolicy('clew', rules) : rules;

export function trustedUrl(url: string): string {
  return policy.createScriptURL(url);
}
