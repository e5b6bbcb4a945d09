// SPDX-License-Identifier: Apache-2.0
// Any bytes are a module to someone, as an ELF file or as text with functions anywhere: what is
// proved of them is written and passes the check, and with one byte changed it does not.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/file_descriptor.h"
#include "copy/check.h"
#include "copy/prove_module.h"

namespace {

using namespace clew;

constexpr uint64_t kTextAddress = 0x1000;
constexpr uint64_t kDataAddress = 0x8000;
constexpr size_t kHeaderSize = 40;

// The header's bytes say where functions begin and what they are; the rest is data, then text.
copy::FactsInput input_of(std::span<const uint8_t> input) {
  const std::span<const uint8_t> header = input.first(kHeaderSize);
  const std::span<const uint8_t> rest = input.subspan(kHeaderSize);
  const size_t data_size = rest.size() / 4;
  copy::FactsInput made;
  code::ModuleText& text = made.text;
  text.position_dependent = (header[0] & 1) != 0;
  text.sections.push_back({kTextAddress, rest.subspan(data_size), true});
  text.sections.push_back({kDataAddress, rest.first(data_size), false});
  uint64_t address = kTextAddress;
  for (size_t i = 1; i < 16; ++i) {
    code::FunctionRange range{.address = address, .size_bytes = header[i]};
    if ((header[i] & 7) == 5) range.owner = header[i] >> 4;
    range.unnamed = (header[16 + i] & 1) != 0;
    text.functions.push_back(range);
    address += header[i] - (header[16 + i] >> 6);  // Some overlap.
  }
  if ((header[0] & 2) != 0) text.landing_pads = {kTextAddress + header[17]};
  if ((header[0] & 4) != 0) text.code_pointers = {kTextAddress + header[18]};
  if ((header[0] & 8) != 0) text.rseq = {{kTextAddress + header[19], kTextAddress + header[20]}};
  if ((header[0] & 16) != 0) text.part_links = {{kTextAddress, kTextAddress + header[21]}};
  for (uint64_t i = 0; (header[0] & 32) != 0 && i < 4; ++i)
    made.slots.push_back({kDataAddress + 8 * i, kTextAddress + header[32 + i]});
  return made;
}

void copy_all(const copy::Facts& facts, uint64_t address, uint32_t changed) {
  const copy::ModuleProof proof = copy::prove_module(facts);
  const auto written = copy::write_copy(facts, proof.proved, {}, address);
  if (!written) {
    CLEW_ASSERT(written.error().code == ErrorCode::Limit);
    return;
  }
  auto checked = copy::check(facts, proof.proved, {}, *written);
  if (!checked) fmt::print(stderr, "{}\n", checked.error().message);
  CLEW_ASSERT(checked.has_value());
  if (!written->bytes.empty()) {
    copy::ModuleCopy other = *written;
    other.bytes[changed % other.bytes.size()] ^= static_cast<uint8_t>(changed >> 24 | 1);
    CLEW_ASSERT(!copy::check(facts, proof.proved, {}, std::move(other)));
  }
  for (const copy::CopiedFunction& one : written->functions)
    CLEW_ASSERT(written->original_of(one.copy) == one.original);
  (void)checked->move_to(changed, changed >> 8);
}

void copy_file(std::span<const uint8_t> bytes) {
  const FileDescriptor file(memfd_create("fuzz", MFD_CLOEXEC));
  const auto count = write(file.get(), bytes.data(), bytes.size());
  if (count != static_cast<ssize_t>(bytes.size())) return;
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto image = target::ModuleImage::read(path, {.debug_directory = "", .name = "fuzz"});
  const auto facts = image ? copy::Facts::of(*image) : fail(ErrorCode::Io, "");
  if (!facts || image->sections().empty()) return;
  copy_all(**facts, image->sections().back().end() + 0x10000, bytes[0] + 256U * bytes.back());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (size > 64 && size < (size_t{1} << 16) && data[0] == 0x7f) copy_file(bytes);
  if (size < kHeaderSize + 16 || size > 8192) return 0;
  const auto facts = copy::Facts::of(input_of(bytes));
  uint32_t changed = 0;
  std::memcpy(&changed, data + 36, sizeof(changed));
  copy_all(*facts, (data[0] & 64) != 0 ? 0x100000 : 0x7ff00000, changed);
  return 0;
}
