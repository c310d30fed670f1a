-- SPDX-License-Identifier: Apache-2.0
-- heard: the agents' reports with new numbers counted as they came, the number of this agent's last one; which of a host's agents is the
-- latest, whatever clocks say. 0: not heard since this column is there, by last_seen.
ALTER TABLE agents ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;
