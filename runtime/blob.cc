// SPDX-License-Identifier: Apache-2.0
// Hands out the embedded blob. runtime_offsets.h and the bytes are generated from the linked blob.
#include "runtime/blob.h"

#include "runtime_offsets.h"

extern "C" const uint8_t clew_runtime_blob_begin[];
extern "C" const uint8_t clew_runtime_blob_end[];

namespace clew::runtime {

static_assert(kOffset_clew_thunks == 0);

Blob runtime_blob() {
  return {.bytes = {clew_runtime_blob_begin, clew_runtime_blob_end},
          .low_address_offset = kOffset_clew_low_address,
          .remote_call_offset = kOffset_clew_remote_call,
          .restorer_offset = kOffset_clew_restorer};
}

}  // namespace clew::runtime
