// SPDX-License-Identifier: Apache-2.0
#pragma once
// Concat, a shuffle of channels and Split of 8-bit images, channels-last, as one pass: each pixel
// is joined from its pieces, some of them through a table (which is how one scale becomes another),
// and written to one or several results in any order. No memory of a result may be that of a piece.

#include <vector>

#include "channel_rows_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

// How a register each is gathered; empty where 64 bytes of a result come from more places than
// kChannelWindows. from: places in the joined pixel.
std::vector<ChannelChunk> plan_channel_chunks(const std::vector<int32_t>& from);

void channel_rows(const Context& context, const ChannelRowsArgs& args);

}  // namespace tenon::onednn::kernels
