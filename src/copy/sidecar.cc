// SPDX-License-Identifier: Apache-2.0
#include "copy/sidecar.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "code/kept_analysis.h"

namespace clew::copy {

namespace {

constexpr uint64_t kMagic = 0x0a79706377656c63;  // "clewcpy\n"
constexpr uint64_t kVersion = 1;
constexpr size_t kKeyOffset = 16;
constexpr size_t kDigestOffset = 48;
constexpr size_t kHeaderSize = 80;
constexpr uint64_t kFileSizeMax = uint64_t{1} << 30;

using Refused = tl::unexpected<Error>;

Refused damaged(std::string_view what) {
  return fail(ErrorCode::Refused, fmt::format("a kept copy of functions is damaged: {}", what));
}

target::Digest digest_of(std::span<const uint8_t> file) {
  target::Sha256 hash;
  hash.add(file.first(kDigestOffset));
  hash.add(file.subspan(kHeaderSize));
  return hash.finish();
}

class NumberWriter {
 public:
  explicit NumberWriter(std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  void put(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes_.push_back(static_cast<uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<uint8_t>(value));
  }
  // A distance in either direction: small ones are small numbers.
  void put_from(uint64_t& last, uint64_t value) {
    const uint64_t distance = value - std::exchange(last, value);
    put(distance << 1 ^ (distance >> 63 != 0 ? ~uint64_t{0} : 0));
  }

 private:
  std::vector<uint8_t>& bytes_;
};

// Zeros once something was wrong.
class NumberReader {
 public:
  explicit NumberReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t get() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const uint8_t byte = bytes_[at_++];
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    is_good_ = false;
    at_ = bytes_.size();
    return 0;
  }
  uint64_t get_from(uint64_t& last) {
    const uint64_t folded = get();
    last += folded >> 1 ^ ((folded & 1) != 0 ? ~uint64_t{0} : 0);
    return last;
  }
  template <typename Word>
  Word get_as() {
    const uint64_t value = get();
    is_good_ = is_good_ && std::in_range<Word>(value);
    return static_cast<Word>(value);
  }
  // Of things that are at least a byte each.
  uint64_t get_count() {
    const uint64_t count = get();
    if (count <= bytes_.size() - at_) return count;
    is_good_ = false;
    return 0;
  }
  std::span<const uint8_t> get_bytes(uint64_t count) {
    return bytes_.subspan(std::exchange(at_, at_ + count), count);
  }
  [[nodiscard]] bool is_good() const { return is_good_; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool is_good_ = true;
};

}  // namespace

class SidecarFile {
 public:
  static std::vector<uint8_t> write(const SidecarKey& key, const Sidecar& sidecar);
  static Expected<Sidecar> read(const SidecarKey& key, std::span<const uint8_t> bytes);

 private:
  static void put_copy(NumberWriter& numbers, const ModuleCopy& copy);
  static void put_refused(NumberWriter& numbers, const Sidecar& sidecar);
  static Expected<void> check_header(const SidecarKey& key, std::span<const uint8_t> bytes);
  static bool get_copy(NumberReader& numbers, ModuleCopy& copy);
  static bool get_fixups(NumberReader& numbers, ModuleCopy& copy);
  static bool get_refused(NumberReader& numbers, Sidecar& sidecar);
};

std::vector<uint8_t> SidecarFile::write(const SidecarKey& key, const Sidecar& sidecar) {
  const ModuleCopy& copy = sidecar.copy.copy();
  std::vector<uint8_t> file(kHeaderSize);
  file.reserve(kHeaderSize + copy.bytes.size() + 3 * copy.pcs.size() + 4 * copy.fixups.size());
  std::memcpy(file.data(), &kMagic, sizeof(kMagic));
  std::memcpy(file.data() + sizeof(kMagic), &kVersion, sizeof(kVersion));
  std::copy(key.begin(), key.end(), file.begin() + kKeyOffset);
  NumberWriter numbers(file);
  numbers.put(copy.address);
  numbers.put(copy.code_size);
  numbers.put(copy.bytes.size());
  file.insert(file.end(), copy.bytes.begin(), copy.bytes.end());
  put_copy(numbers, copy);
  put_refused(numbers, sidecar);
  const target::Digest digest = digest_of(file);
  std::copy(digest.begin(), digest.end(), file.begin() + kDigestOffset);
  return file;
}

void SidecarFile::put_copy(NumberWriter& numbers, const ModuleCopy& copy) {
  uint64_t original = 0;
  uint64_t place = copy.address;
  numbers.put(copy.functions.size());
  for (const CopiedFunction& one : copy.functions) {
    numbers.put(one.function);
    numbers.put_from(original, one.original);
    numbers.put_from(place, one.copy);
  }
  uint64_t offset = 0;
  original = 0;
  numbers.put(copy.pcs.size());
  for (const CopiedPc& one : copy.pcs) {
    const uint64_t distance = one.offset - std::exchange(offset, one.offset);
    numbers.put(distance << 2 | static_cast<uint64_t>(one.kind));
    numbers.put_from(original, one.original);
  }
  place = copy.address;
  original = 0;
  numbers.put(copy.tables.size());
  for (const ClonedTable& one : copy.tables) {
    numbers.put_from(original, one.original);
    numbers.put_from(place, one.copy);
    numbers.put(uint64_t{one.entries} << 1 | static_cast<uint64_t>(one.kind));
  }
  offset = 0;
  numbers.put(copy.fixups.size());
  for (const Fixup& one : copy.fixups) {
    const uint64_t distance = one.offset - std::exchange(offset, one.offset);
    numbers.put(distance << 3 | static_cast<uint64_t>(one.kind) << 1 | (one.is_in_module ? 1 : 0));
  }
}

void SidecarFile::put_refused(NumberWriter& numbers, const Sidecar& sidecar) {
  numbers.put(sidecar.proved_bytes);
  numbers.put(sidecar.refused_bytes);
  numbers.put(sidecar.refused.size());
  for (const NotCopied& one : sidecar.refused) {
    numbers.put(one.function);
    numbers.put(one.size_bytes);
    numbers.put(static_cast<uint64_t>(one.refusal.reason));
    numbers.put(one.refusal.address);
  }
}

Expected<void> SidecarFile::check_header(const SidecarKey& key, std::span<const uint8_t> bytes) {
  uint64_t magic = 0;
  uint64_t version = 0;
  if (bytes.size() < kHeaderSize) return damaged("its size");
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  std::memcpy(&version, bytes.data() + sizeof(magic), sizeof(version));
  if (magic != kMagic || version != kVersion) return damaged("its version");
  if (!std::equal(key.begin(), key.end(), bytes.begin() + kKeyOffset)) return damaged("its key");
  const target::Digest digest = digest_of(bytes);
  if (!std::equal(digest.begin(), digest.end(), bytes.begin() + kDigestOffset)) {
    return damaged("its checksum");
  }
  return {};
}

Expected<Sidecar> SidecarFile::read(const SidecarKey& key, std::span<const uint8_t> bytes) {
  CLEW_TRY(check_header(key, bytes));
  NumberReader numbers(bytes.subspan(kHeaderSize));
  ModuleCopy copy;
  copy.address = numbers.get();
  copy.code_size = numbers.get_as<uint32_t>();
  const std::span<const uint8_t> content = numbers.get_bytes(numbers.get_count());
  copy.bytes.assign(content.begin(), content.end());
  const bool is_apart = copy.code_size <= copy.bytes.size() && copy.address <= copy.end() &&
                        copy.bytes.size() <= kFileSizeMax;
  if (!numbers.is_good() || !is_apart) return damaged("its size");
  if (!get_copy(numbers, copy) || !get_fixups(numbers, copy)) return damaged("its lists");
  Sidecar sidecar{.copy = CheckedCopy(std::move(copy)), .refused = {}};
  if (!get_refused(numbers, sidecar)) return damaged("its refusals");
  return sidecar;
}

bool SidecarFile::get_copy(NumberReader& numbers, ModuleCopy& copy) {
  uint64_t original = 0;
  uint64_t place = copy.address;
  bool is_right = true;
  copy.functions.resize(numbers.get_count());
  for (CopiedFunction& one : copy.functions) {
    const uint64_t last = original;
    one.function = numbers.get_as<uint32_t>();
    one.original = numbers.get_from(original);
    one.copy = numbers.get_from(place);
    is_right = is_right && one.original >= last && one.copy - copy.address < copy.code_size;
  }
  uint64_t offset = 0;
  original = 0;
  copy.pcs.resize(numbers.get_count());
  for (CopiedPc& one : copy.pcs) {
    const uint64_t number = numbers.get();
    const bool is_first = &one == copy.pcs.data();
    offset += number >> 2;
    const bool is_kind = (number & 3) <= static_cast<uint64_t>(PcKind::RunsOn);
    is_right = is_right && is_kind && offset < copy.code_size && (is_first || number > 3);
    one = {static_cast<uint32_t>(offset), numbers.get_from(original),
           static_cast<PcKind>(number & 3)};
  }
  original = 0;
  uint64_t end = copy.address + copy.code_size;
  place = copy.address;
  copy.tables.resize(numbers.get_count());
  for (ClonedTable& one : copy.tables) {
    one.original = numbers.get_from(original);
    one.copy = numbers.get_from(place);
    const uint64_t number = numbers.get();
    one.kind = (number & 1) != 0 ? TableKind::Addresses : TableKind::Offsets;
    one.entries = static_cast<uint32_t>(number >> 1);
    const uint64_t entry_size = one.kind == TableKind::Offsets ? 4 : 8;
    is_right = is_right && std::in_range<uint32_t>(number >> 1) && one.copy >= end &&
               one.copy <= copy.end() && one.entries * entry_size <= copy.end() - one.copy;
    end = one.copy + one.entries * entry_size;
  }
  return is_right && numbers.is_good();
}

bool SidecarFile::get_fixups(NumberReader& numbers, ModuleCopy& copy) {
  uint64_t next = 0;  // Behind the last one's field.
  uint64_t offset = 0;
  bool is_right = true;
  copy.fixups.resize(numbers.get_count());
  for (Fixup& one : copy.fixups) {
    const uint64_t number = numbers.get();
    const uint64_t kind = number >> 1 & 3;
    offset += number >> 3;
    const bool is_kind = kind <= static_cast<uint64_t>(FixupKind::Absolute64);
    one.kind = is_kind ? static_cast<FixupKind>(kind) : FixupKind::Outward;
    one.offset = static_cast<uint32_t>(offset);
    one.is_in_module = (number & 1) != 0;
    const uint64_t size = one.kind == FixupKind::Absolute64 ? 8 : 4;
    is_right = is_right && is_kind && offset >= next && offset <= copy.bytes.size() &&
               size <= copy.bytes.size() - offset;
    next = offset + size;
  }
  return is_right && numbers.is_good();
}

bool SidecarFile::get_refused(NumberReader& numbers, Sidecar& sidecar) {
  sidecar.proved_bytes = numbers.get();
  sidecar.refused_bytes = numbers.get();
  sidecar.refused.resize(numbers.get_count());
  bool is_right = true;
  for (NotCopied& one : sidecar.refused) {
    one.function = numbers.get_as<uint32_t>();
    one.size_bytes = numbers.get();
    const uint64_t reason = numbers.get();
    is_right = is_right && reason < kReasons;
    one.refusal.reason = reason < kReasons ? static_cast<Reason>(reason) : Reason::NoCode;
    one.refusal.address = numbers.get();
  }
  return is_right && numbers.is_good() && numbers.at_end();
}

std::optional<SidecarKey> sidecar_key(const FactsInput& input) {
  const auto text = code::digest_of(input.text);
  if (!text) return std::nullopt;
  target::Sha256 hash;
  hash.add(*text);
  std::vector<uint64_t> numbers = {input.noreturn_slots.size(), input.slots.size(),
                                   input.resolvers.size(), input.caller_slots.size()};
  numbers.insert(numbers.end(), input.noreturn_slots.begin(), input.noreturn_slots.end());
  for (const target::CodePointerSlot& slot : input.slots)
    numbers.insert(numbers.end(), {slot.slot_address, slot.value});
  numbers.insert(numbers.end(), input.resolvers.begin(), input.resolvers.end());
  numbers.insert(numbers.end(), input.caller_slots.begin(), input.caller_slots.end());
  hash.add({reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * sizeof(uint64_t)});
  return hash.finish();
}

std::vector<uint8_t> encode(const SidecarKey& key, const Sidecar& sidecar) {
  return SidecarFile::write(key, sidecar);
}

Expected<Sidecar> decode(const SidecarKey& key, std::span<const uint8_t> bytes) {
  return SidecarFile::read(key, bytes);
}

std::optional<Sidecar> Sidecars::find(const SidecarKey& key) const {
  const auto file = folder_.open(target::hex_of(key) + ".copy");
  if (!file || file->size_bytes > kFileSizeMax) return std::nullopt;
  std::vector<uint8_t> bytes(file->size_bytes);
  target::BlockReader reader(file->descriptor.get(), file->size_bytes);
  if (!reader.read_bytes(bytes)) return std::nullopt;
  auto sidecar = decode(key, bytes);
  return sidecar ? std::optional(std::move(*sidecar)) : std::nullopt;
}

void Sidecars::store(const SidecarKey& key, const Sidecar& sidecar) const {
  const std::vector<uint8_t> bytes = encode(key, sidecar);
  folder_.store(target::hex_of(key) + ".copy", [&](int fd) {
    target::BlockWriter writer(fd);
    writer.write(bytes);
    return writer.good();
  });
}

}  // namespace clew::copy
