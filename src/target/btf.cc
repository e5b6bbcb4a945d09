// SPDX-License-Identifier: Apache-2.0
#include "target/btf.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <bpf/btf.h>
#include <dirent.h>
#include <fmt/format.h>

#include "base/error_text.h"

namespace clew::target {

namespace {

constexpr const char* kDirectory = "/sys/kernel/btf";
constexpr uint32_t kStripDepthMax = 64;            // Chains of typedefs and qualifiers.
constexpr uint32_t kMemberDepthMax = 16;           // Anonymous members in anonymous members.
constexpr uint32_t kMembersLookedAtMax = 100'000;  // For one name, in all of them.

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};

struct CloseDirectory {
  void operator()(DIR* directory) const { (void)closedir(directory); }
};

BtfKind kind_of(const btf_type* type) {
  switch (btf_kind(type)) {
    case BTF_KIND_INT:
      return BtfKind::Integer;
    case BTF_KIND_FLOAT:
      return BtfKind::Float;
    case BTF_KIND_PTR:
      return BtfKind::Pointer;
    case BTF_KIND_ARRAY:
      return BtfKind::Array;
    case BTF_KIND_STRUCT:
      return BtfKind::Struct;
    case BTF_KIND_UNION:
      return BtfKind::Union;
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      return BtfKind::Enum;
    case BTF_KIND_FWD:
      return BtfKind::Forward;
    case BTF_KIND_TYPEDEF:
      return BtfKind::Typedef;
    case BTF_KIND_CONST:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_TYPE_TAG:
      return BtfKind::Qualifier;
    case BTF_KIND_FUNC:
      return BtfKind::Function;
    case BTF_KIND_FUNC_PROTO:
      return BtfKind::Prototype;
    case BTF_KIND_VAR:
      return BtfKind::Variable;
    case BTF_KIND_UNKN:
      return BtfKind::Void;
    default:
      return BtfKind::Other;
  }
}

bool has_size(BtfKind kind) {
  return kind == BtfKind::Integer || kind == BtfKind::Float || kind == BtfKind::Struct ||
         kind == BtfKind::Union || kind == BtfKind::Enum;
}

bool has_target(BtfKind kind) {
  return kind == BtfKind::Pointer || kind == BtfKind::Typedef || kind == BtfKind::Qualifier ||
         kind == BtfKind::Function || kind == BtfKind::Prototype || kind == BtfKind::Variable;
}

// libbpf asks the offset of the types to be aligned, but not the header that it counts from.
bool is_aligned(std::span<const uint8_t> section) {
  btf_header header{};
  if (section.size() < sizeof header) return false;
  std::memcpy(&header, section.data(), sizeof header);
  return header.magic == BTF_MAGIC && header.hdr_len % alignof(btf_type) == 0;
}

uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : name)
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash ^ (hash >> 29);
}

}  // namespace

struct Btf::Data {
  std::unique_ptr<btf, FreeBtf> types;
  BtfId first = 1;
  // Open addressing, by name alone: numbers of named types, ascending along each probe sequence.
  std::vector<BtfId> index;
  // The enumerators of all enumerations, by name.
  struct Enumerator {
    std::string_view name;
    FoundEnumerator found;
  };
  std::vector<Enumerator> enumerators;

  [[nodiscard]] const btf_type* raw(BtfId type) const { return btf__type_by_id(types.get(), type); }
  [[nodiscard]] std::string_view name_at(uint32_t offset) const {
    const char* name = btf__name_by_offset(types.get(), offset);
    return name == nullptr ? std::string_view() : std::string_view(name);
  }
  void make_index();
  void make_enumerators();
  void add_enumerators(BtfId type);
};

Btf::Btf(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Btf::Btf(Btf&&) noexcept = default;
Btf& Btf::operator=(Btf&&) noexcept = default;
Btf::~Btf() = default;

Expected<Btf> Btf::of_kernel() {
  auto result = open(fmt::format("{}/vmlinux", kDirectory), nullptr);
  if (!result && result.error().code == ErrorCode::NotFound) {
    return fail(ErrorCode::Refused,
                "the kernel does not describe its types (no /sys/kernel/btf/vmlinux); it needs "
                "CONFIG_DEBUG_INFO_BTF");
  }
  return result;
}

Expected<Btf> Btf::of_module(std::string_view module, const Btf& kernel) {
  if (module.find('/') != std::string_view::npos) {
    return fail(ErrorCode::NotFound, fmt::format("no kernel module '{}'", module));
  }
  return open(fmt::format("{}/{}", kDirectory, module), &kernel);
}

Expected<Btf> Btf::open(const std::string& path, const Btf* kernel) {
  auto data = std::make_unique<Data>();
  btf* base = kernel == nullptr ? nullptr : kernel->data_->types.get();
  errno = 0;
  data->types.reset(btf__parse_raw_split(path.c_str(), base));
  if (data->types == nullptr) {
    const int error = errno;
    return fail(error == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                fmt::format("cannot read the types in {}: {}", path, error_text(error)));
  }
  if (kernel != nullptr) data->first = kernel->end_id();
  return Btf(std::move(data));
}

Expected<Btf> Btf::of_section(std::span<const uint8_t> bytes) {
  if (!is_aligned(bytes)) return fail(ErrorCode::Refused, "bad type information: its header");
  auto data = std::make_unique<Data>();
  errno = 0;
  data->types.reset(btf__new(bytes.data(), static_cast<uint32_t>(bytes.size())));
  if (data->types == nullptr) {
    return fail(ErrorCode::Refused, fmt::format("bad type information: {}", error_text(errno)));
  }
  return Btf(std::move(data));
}

std::string_view Btf::text_at(uint32_t offset) const {
  return data_->name_at(offset);
}

BtfId Btf::first_id() const {
  return data_->first;
}

BtfId Btf::end_id() const {
  return btf__type_cnt(data_->types.get());
}

BtfType Btf::at(BtfId type) const {
  const btf_type* raw = type == kBtfVoid ? nullptr : data_->raw(type);
  if (raw == nullptr) return {};
  BtfType result{.kind = kind_of(raw), .name = data_->name_at(raw->name_off)};
  if (has_size(result.kind)) result.size_bytes = raw->size;
  if (has_target(result.kind)) result.target = raw->type;
  if (result.kind == BtfKind::Integer) {
    result.is_signed = (btf_int_encoding(raw) & BTF_INT_SIGNED) != 0;
    result.is_boolean = (btf_int_encoding(raw) & BTF_INT_BOOL) != 0;
  } else if (result.kind == BtfKind::Enum) {
    result.is_signed = btf_kflag(raw);
  } else if (result.kind == BtfKind::Forward) {
    result.is_union = btf_kflag(raw);
  } else if (result.kind == BtfKind::Array) {
    result.target = btf_array(raw)->type;
    result.count = btf_array(raw)->nelems;
  } else if (result.kind == BtfKind::Prototype) {
    const uint32_t count = btf_vlen(raw);
    const btf_param* last = count == 0 ? nullptr : btf_params(raw) + count - 1;
    result.is_variadic = last != nullptr && last->type == 0 && last->name_off == 0;
  }
  return result;
}

std::vector<BtfMember> Btf::members(BtfId record) const {
  std::vector<BtfMember> result;
  const btf_type* raw = data_->raw(record);
  if (raw == nullptr || !btf_is_composite(raw)) return result;
  const uint32_t count = btf_vlen(raw);
  result.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const btf_member& member = btf_members(raw)[i];
    result.push_back({.name = data_->name_at(member.name_off),
                      .type = member.type,
                      .offset_bits = btf_member_bit_offset(raw, i),
                      .bit_size = static_cast<uint8_t>(btf_member_bitfield_size(raw, i))});
  }
  return result;
}

std::vector<BtfEnumerator> Btf::enumerators(BtfId enumeration) const {
  std::vector<BtfEnumerator> result;
  const btf_type* raw = data_->raw(enumeration);
  if (raw == nullptr || !btf_is_any_enum(raw)) return result;
  const uint32_t count = btf_vlen(raw);
  for (uint32_t i = 0; i < count; ++i) {
    if (btf_is_enum64(raw)) {
      const struct btf_enum64& each = btf_enum64(raw)[i];
      result.push_back(
          {data_->name_at(each.name_off), static_cast<int64_t>(btf_enum64_value(&each))});
    } else {
      const struct btf_enum& each = btf_enum(raw)[i];
      const auto value =
          btf_kflag(raw) ? int64_t{each.val} : int64_t{static_cast<uint32_t>(each.val)};
      result.push_back({data_->name_at(each.name_off), value});
    }
  }
  return result;
}

std::vector<BtfParameter> Btf::parameters(BtfId prototype) const {
  std::vector<BtfParameter> result;
  const btf_type* raw = data_->raw(prototype);
  if (raw == nullptr || !btf_is_func_proto(raw)) return result;
  const uint32_t count = btf_vlen(raw);
  for (uint32_t i = 0; i < count; ++i) {
    const btf_param& parameter = btf_params(raw)[i];
    const bool is_ellipsis = i + 1 == count && parameter.type == 0 && parameter.name_off == 0;
    if (!is_ellipsis) result.push_back({data_->name_at(parameter.name_off), parameter.type});
  }
  return result;
}

// --- search --------------------------------------------------------------------------------------

void Btf::Data::make_index() {
  const BtfId end = btf__type_cnt(types.get());
  index.assign(std::bit_ceil(size_t{2} * (end - first) + 2), kBtfVoid);
  const uint64_t mask = index.size() - 1;
  for (BtfId type = first; type < end; ++type) {
    const std::string_view name = name_at(raw(type)->name_off);
    if (name.empty()) continue;
    uint64_t slot = hash_of(name) & mask;
    while (index[slot] != kBtfVoid)
      slot = (slot + 1) & mask;
    index[slot] = type;
  }
}

BtfId Btf::find(BtfKind kind, std::string_view name) const {
  if (name.empty()) return kBtfVoid;
  if (data_->index.empty()) data_->make_index();
  const uint64_t mask = data_->index.size() - 1;
  for (uint64_t slot = hash_of(name) & mask; data_->index[slot] != kBtfVoid;
       slot = (slot + 1) & mask) {
    const BtfId type = data_->index[slot];
    const btf_type* raw = data_->raw(type);
    if (kind_of(raw) == kind && data_->name_at(raw->name_off) == name) return type;
  }
  return kBtfVoid;
}

void Btf::Data::add_enumerators(BtfId type) {
  const btf_type* enumeration = raw(type);
  const uint32_t count = btf_vlen(enumeration);
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_wide = btf_is_enum64(enumeration);
    const uint32_t name =
        is_wide ? btf_enum64(enumeration)[i].name_off : btf_enum(enumeration)[i].name_off;
    // The value is read when it is asked for: `value` is the position until then.
    enumerators.push_back({name_at(name), {.type = type, .value = int64_t{i}}});
  }
}

void Btf::Data::make_enumerators() {
  const BtfId end = btf__type_cnt(types.get());
  for (BtfId type = first; type < end; ++type) {
    if (btf_is_any_enum(raw(type))) add_enumerators(type);
  }
  std::stable_sort(enumerators.begin(), enumerators.end(),
                   [](const Enumerator& a, const Enumerator& b) { return a.name < b.name; });
}

std::optional<Btf::FoundEnumerator> Btf::find_enumerator(std::string_view name) const {
  auto& all = data_->enumerators;
  if (all.empty()) data_->make_enumerators();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Data::Enumerator& each, std::string_view wanted) { return each.name < wanted; });
  if (found == all.end() || found->name != name) return std::nullopt;
  const auto position = static_cast<size_t>(found->found.value);
  return FoundEnumerator{found->found.type, enumerators(found->found.type)[position].value};
}

BtfId Btf::skip_qualifiers(BtfId type) const {
  for (uint32_t depth = 0; depth < kStripDepthMax; ++depth) {
    const BtfType description = at(type);
    if (description.kind != BtfKind::Qualifier) return type;
    type = description.target;
  }
  return kBtfVoid;
}

BtfId Btf::strip(BtfId type) const {
  for (uint32_t depth = 0; depth < kStripDepthMax; ++depth) {
    const BtfType description = at(type);
    if (description.kind != BtfKind::Qualifier && description.kind != BtfKind::Typedef) return type;
    type = description.target;
  }
  return kBtfVoid;
}

namespace {

// One name, looked for in a record and in its anonymous members, which may be of the same record
// again: who wrote them decides how many ways there are.
class MemberSearch {
 public:
  MemberSearch(const Btf& btf, std::string_view name) : btf_(btf), name_(name) {}

  std::optional<BtfMember> in(BtfId record, uint32_t depth = 0) {
    if (depth > kMemberDepthMax) return std::nullopt;
    for (const BtfMember& member : btf_.members(btf_.strip(record))) {
      if (member.name == name_) return member;
      if (++looked_at_ > kMembersLookedAtMax) return std::nullopt;
      if (!member.name.empty()) continue;
      auto inner = in(member.type, depth + 1);
      if (!inner) continue;
      inner->offset_bits += member.offset_bits;
      return inner;
    }
    return std::nullopt;
  }

 private:
  const Btf& btf_;
  std::string_view name_;
  uint32_t looked_at_ = 0;
};

}  // namespace

std::optional<BtfMember> Btf::member(BtfId record, std::string_view path) const {
  BtfMember place{.name = {}, .type = record};
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    const auto next = MemberSearch(*this, path.substr(0, dot)).in(place.type);
    if (!next) return std::nullopt;
    place = {next->name, next->type, place.offset_bits + next->offset_bits, next->bit_size};
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return place;
}

std::vector<std::string> btf_modules() {
  std::vector<std::string> result;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(kDirectory));
  if (directory == nullptr) return result;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours.
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "vmlinux" && !name.starts_with('.')) result.emplace_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace clew::target
