// SPDX-License-Identifier: Apache-2.0
// The page's views in the order of their tabs. A view is made when it is shown for the first time.

import { AgentsView } from "../views/agents/agents_view";
import { DiffView } from "../views/diff/diff_view";
import { FlameView } from "../views/flame/flame_view";
import { ModulesView } from "../views/modules/modules_view";
import { OverviewView } from "../views/overview/overview_view";
import { TimeView } from "../views/time/time_view";
import { WallView } from "../views/wall/wall_view";
import type { Shell, View } from "./view";

export interface Entry {
  page: string; // in the address
  title: string;
  key: string; // after g
  make(shell: Shell): View;
}

export const VIEWS: readonly Entry[] = [
  { page: "overview", title: "Overview", key: "o", make: (shell) => new OverviewView(shell) },
  { page: "graph", title: "Flame graph", key: "f", make: (shell) => new FlameView(shell) },
  { page: "diff", title: "Diff", key: "d", make: (shell) => new DiffView(shell) },
  { page: "time", title: "Time", key: "t", make: (shell) => new TimeView(shell) },
  { page: "wall", title: "Wall clock", key: "w", make: (shell) => new WallView(shell) },
  { page: "modules", title: "Modules", key: "m", make: (shell) => new ModulesView(shell) },
  { page: "agents", title: "Agents", key: "a", make: (shell) => new AgentsView(shell) },
];
