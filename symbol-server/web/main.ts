// SPDX-License-Identifier: Apache-2.0

import { Page } from "./shell/page";

new Page().start();
