-- SPDX-License-Identifier: Apache-2.0
-- stacks: "name count" lines, how the agent's stack walks ended (farflame.stacks.*), cumulative like lost.
ALTER TABLE agents ADD COLUMN stacks TEXT NOT NULL DEFAULT '';
