// SPDX-License-Identifier: Apache-2.0
#include "blob_copy.h"

#include <algorithm>

#include <sys/mman.h>

#include "base/assert.h"
#include "runtime/d_blob.h"

namespace clew::accessors {

BlobCopy::BlobCopy(HostileSession& session) : size_(runtime::d_blob().size()) {
  void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CLEW_ASSERT(at != MAP_FAILED);
  code_ = static_cast<uint8_t*>(at);
  std::ranges::copy(runtime::d_blob(), code_);
  runtime::set_place({code_, size_}, session.place());
  CLEW_ASSERT(mprotect(code_, size_, PROT_READ | PROT_EXEC) == 0);
  session.set_thunks(reinterpret_cast<uint64_t>(code_));
}

BlobCopy::~BlobCopy() {
  munmap(code_, size_);
}

}  // namespace clew::accessors
