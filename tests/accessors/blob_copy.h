// SPDX-License-Identifier: Apache-2.0
// Test support: the D runtime as processes get it, byte for byte, for a session.
#pragma once

#include <cstdint>
#include <span>

#include "hostile_session.h"

namespace clew::accessors {

class BlobCopy {
 public:
  // The session calls it from now on.
  explicit BlobCopy(HostileSession& session);
  BlobCopy(const BlobCopy&) = delete;
  BlobCopy& operator=(const BlobCopy&) = delete;
  ~BlobCopy();

  [[nodiscard]] std::span<const uint8_t> code() const { return {code_, size_}; }

 private:
  uint8_t* code_ = nullptr;
  size_t size_ = 0;
};

}  // namespace clew::accessors
