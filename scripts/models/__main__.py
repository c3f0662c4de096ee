# SPDX-License-Identifier: Apache-2.0
import sys

from models.fetch import main

sys.exit(main())
