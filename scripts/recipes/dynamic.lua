-- SPDX-License-Identifier: Apache-2.0
-- dynamic: products in 8 bits whose activations are scaled at run time: no calibration data are needed.
--   tenon optimize MODEL -o OUT --recipe dynamic [--data FILE] [--set 'skip=["head*"]']
local tn = require "tenon"
local recipe = tn.recipe {
  name = "dynamic", passes = { "quantizer.dynamic", "precision.widen" }, floats = true, leave = "skip",
}
return recipe.described or recipe.convert("quantizer.dynamic")
