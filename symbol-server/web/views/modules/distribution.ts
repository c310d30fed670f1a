// SPDX-License-Identifier: Apache-2.0
// Which distribution hosts run, by their kernels' releases, and where its debug information is. Pure.

import type { AgentState } from "../../server/api";

export interface Distribution {
  name: string;
  debuginfod: string; // its server; elfutils' own asks those of all
  packageOf(buildId: string): string; // a command that installs the package with its debug information; "" there are none
}

const find = (id: string) => `sudo apt install $(find-dbgsym-packages ${id})`;
const byFile = (id: string) => `sudo dnf --enablerepo='*debug*' install /usr/lib/debug/.build-id/${id.slice(0, 2)}/${id.slice(2)}.debug`;

export const UNKNOWN: Distribution = { name: "", debuginfod: "https://debuginfod.elfutils.org", packageOf: () => "" };

const KNOWN: [RegExp, Distribution][] = [
  [/\.fc\d+/, { name: "Fedora", debuginfod: "https://debuginfod.fedoraproject.org", packageOf: byFile }],
  [/\.el\d+/, { name: "Enterprise Linux", debuginfod: "https://debuginfod.centos.org", packageOf: byFile }],
  [/-(generic|lowlatency|aws|azure|gcp|oracle)$/, { name: "Ubuntu", debuginfod: "https://debuginfod.ubuntu.com", packageOf: find }],
  [/[+-]deb\d+|-(amd64|arm64|686)$/, { name: "Debian", debuginfod: "https://debuginfod.debian.net", packageOf: find }],
  [/-arch\d/, { name: "Arch Linux", debuginfod: "https://debuginfod.archlinux.org", packageOf: () => "" }],
  [
    /-default$/,
    {
      name: "openSUSE",
      debuginfod: "https://debuginfod.opensuse.org",
      packageOf: (id) => `sudo zypper install -C 'debuginfo(build-id)=${id}'`,
    },
  ],
];

// That of most hosts.
export function distributionOf(agents: readonly Pick<AgentState, "kernel">[]): Distribution {
  const counts = new Map<Distribution, number>();
  for (const { kernel } of agents) {
    const known = KNOWN.find(([pattern]) => pattern.test(kernel))?.[1];
    if (known !== undefined) {
      counts.set(known, (counts.get(known) ?? 0) + 1);
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? UNKNOWN;
}
