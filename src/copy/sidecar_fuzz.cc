// SPDX-License-Identifier: Apache-2.0
// Any bytes behind a right header and checksum are a sidecar or an error, and a sidecar can be
// used: nothing of it leads outside of its bytes.
#include <algorithm>
#include <span>
#include <vector>

#include "base/assert.h"
#include "copy/sidecar.h"
#include "target/sha256.h"

namespace {

using namespace clew;

constexpr size_t kDigestOffset = 48;
constexpr size_t kHeaderSize = 80;

std::vector<uint8_t> sealed(std::span<const uint8_t> content) {
  std::vector<uint8_t> file = {'c', 'l', 'e', 'w', 'c', 'p', 'y', '\n', 1};
  file.resize(kHeaderSize);
  file.insert(file.end(), content.begin(), content.end());
  target::Sha256 hash;
  hash.add(std::span(file).first(kDigestOffset));
  hash.add(content);
  const target::Digest digest = hash.finish();
  std::copy(digest.begin(), digest.end(), file.begin() + kDigestOffset);
  return file;
}

void use(copy::Sidecar& sidecar) {
  const copy::ModuleCopy& made = sidecar.copy.copy();
  const copy::CopyMap map(made);
  for (const copy::CopiedFunction& one : made.functions) {
    (void)made.function_copy(one.original);
    (void)made.original_of(one.copy);
    (void)map.copy_of(one.original);
  }
  uint64_t sum = 0;
  for (const copy::ClonedTable& one : made.tables) {
    const uint64_t size = one.entries * (one.kind == copy::TableKind::Offsets ? 4U : 8U);
    for (const uint8_t byte : std::span(made.bytes).subspan(one.copy - made.address, size))
      sum += byte;
  }
  for (const copy::NotCopied& one : sidecar.refused)
    sum += copy::name(one.refusal.reason).size();
  CLEW_ASSERT(sum < UINT64_MAX);
  (void)sidecar.copy.move_to(0x555555554000, 0x555555560000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  const copy::SidecarKey key{};
  (void)copy::decode(key, bytes);
  auto sidecar = copy::decode(key, sealed(bytes));
  if (sidecar) use(*sidecar);
  return 0;
}
