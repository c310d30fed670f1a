// SPDX-License-Identifier: Apache-2.0
// Names that somebody asked the server to look for now: what became of them is said once it is known.

import type { ModuleState } from "../../server/api";
import { fetchModule } from "../../server/upload";
import { formatCount } from "../../text/format";
import { isWhole, isWorking } from "./modules_advice";

const SETTLE_MS = 1200; // until the server has begun

export class ModuleFetches {
  private readonly asked = new Map<string, { before: number; at: number }>();

  // notice: who is asked, or why nobody is. It throws nothing.
  async start({ build_id, unsymbolized }: ModuleState, notice: (text: string) => void): Promise<void> {
    try {
      notice(await fetchModule(build_id));
      this.asked.set(build_id, { before: unsymbolized, at: performance.now() });
    } catch (failure) {
      notice((failure as Error).message);
    }
  }

  get isBusy(): boolean {
    return this.asked.size > 0;
  }

  has({ build_id }: ModuleState): boolean {
    return this.asked.has(build_id);
  }

  // A newer list: sentences on those that are settled; named: some of them have names now.
  settle(modules: readonly ModuleState[]): { sentences: string[]; named: boolean } {
    const sentences: string[] = [];
    let named = false;
    for (const [id, { before, at }] of this.asked) {
      const module = modules.find(({ build_id }) => build_id === id);
      if (module !== undefined && (isWorking(module) || performance.now() - at < SETTLE_MS) && !isWhole(module)) {
        continue;
      }
      this.asked.delete(id);
      if (module !== undefined) {
        named ||= module.unsymbolized < before;
        sentences.push(outcome(module, before));
      }
    }
    return { sentences, named };
  }
}

function outcome(module: ModuleState, before: number): string {
  if (isWhole(module)) {
    return `${module.name}: its names are here.`;
  }
  const reason = module.reason === "" ? "" : `: ${module.reason}`;
  return module.unsymbolized < before
    ? `${module.name}: ${formatCount(before - module.unsymbolized)} samples more have names${reason}.`
    : `${module.name}: nothing new${reason}.`;
}
