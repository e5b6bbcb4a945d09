// SPDX-License-Identifier: Apache-2.0
#include "kernel/bpf_types.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_map>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/btf.h>
#include <sys/stat.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::kernel {
namespace {

constexpr char kPath[] = "/sys/kernel/btf/vmlinux";
constexpr std::string_view kTracepointPrefix = "btf_trace_";
constexpr uint32_t kDepthMax = 16;  // Of members in members.

size_t extra_bytes(const btf_type& type) {
  const size_t count = BTF_INFO_VLEN(type.info);
  switch (BTF_INFO_KIND(type.info)) {
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      return 4;
    case BTF_KIND_ARRAY:
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_DATASEC:
    case BTF_KIND_ENUM64:
      return 12 * (BTF_INFO_KIND(type.info) == BTF_KIND_ARRAY ? 1 : count);
    case BTF_KIND_ENUM:
    case BTF_KIND_FUNC_PROTO:
      return 8 * count;
    default:
      return 0;
  }
}

Expected<std::vector<uint8_t>> read_file(const char* path) {
  const FileDescriptor file(open(path, O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    return fail(ErrorCode::Refused, fmt::format("the kernel does not show its types ({}): {}", path,
                                                error_text(errno)));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got <= 0) return fail(ErrorCode::Io, fmt::format("reading {}", path));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

// The types by number, and the two kinds of names that are asked for.
struct KernelTypes::Data {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> places;  // Of each type, in `bytes`.
  size_t texts = 0;
  std::unordered_map<std::string_view, uint32_t> records;
  std::unordered_map<std::string_view, uint32_t> tracepoints;
  std::unordered_map<std::string_view, uint32_t> functions;

  template <typename Value>
  [[nodiscard]] Value at(size_t offset) const {
    Value value{};
    if (offset + sizeof value <= bytes.size())
      std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] btf_type type(uint32_t id) const {
    return id < places.size() ? at<btf_type>(places[id]) : btf_type{};
  }
  [[nodiscard]] std::string_view text(uint32_t offset) const {
    if (texts + offset >= bytes.size()) return {};
    const auto* begin = reinterpret_cast<const char*>(bytes.data() + texts + offset);
    return {begin, strnlen(begin, bytes.size() - texts - offset)};
  }

  void index() {
    const auto header = at<btf_header>(0);
    texts = header.hdr_len + header.str_off;
    places.push_back(0);
    const size_t end =
        std::min<size_t>(bytes.size(), header.hdr_len + header.type_off + header.type_len);
    for (size_t place = header.hdr_len + header.type_off; place < end;) {
      const auto id = static_cast<uint32_t>(places.size());
      const auto one = at<btf_type>(place);
      places.push_back(static_cast<uint32_t>(place));
      place += sizeof(btf_type) + extra_bytes(one);
      remember(id, one);
    }
  }

  void remember(uint32_t id, const btf_type& one) {
    const uint32_t kind = BTF_INFO_KIND(one.info);
    if (kind == BTF_KIND_STRUCT) records.emplace(text(one.name_off), id);
    if (kind != BTF_KIND_TYPEDEF) return;
    const std::string_view name = text(one.name_off);
    if (name.starts_with(kTracepointPrefix)) {
      tracepoints.emplace(name.substr(kTracepointPrefix.size()), id);
    }
  }

  // Most of all names, which few scripts ask for: read when the first one is.
  [[nodiscard]] const std::unordered_map<std::string_view, uint32_t>& all_functions() {
    if (!functions.empty()) return functions;
    for (uint32_t id = 1; id < places.size(); ++id) {
      const btf_type one = type(id);
      if (BTF_INFO_KIND(one.info) == BTF_KIND_FUNC) functions.emplace(text(one.name_off), id);
    }
    return functions;
  }

  struct Member {
    uint64_t offset = 0;
    uint32_t type = 0;
  };

  // A member of a struct or union, also of one of its unnamed members.
  [[nodiscard]] std::optional<Member> member(uint32_t record, std::string_view name,
                                             uint32_t depth) const {
    const btf_type type_of = type(record);
    const bool has_bit_fields = BTF_INFO_KFLAG(type_of.info);
    for (uint32_t i = 0; i < BTF_INFO_VLEN(type_of.info); ++i) {
      const auto one = at<btf_member>(places[record] + sizeof(btf_type) + i * sizeof(btf_member));
      const uint64_t bits = has_bit_fields ? BTF_MEMBER_BIT_OFFSET(one.offset) : one.offset;
      if (text(one.name_off) == name) return Member{bits / 8, one.type};
      if (one.name_off != 0 || depth == 0 || !is_record(one.type)) continue;
      const std::optional<Member> inner = member(one.type, name, depth - 1);
      if (inner) return Member{bits / 8 + inner->offset, inner->type};
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_record(uint32_t id) const {
    const uint32_t kind = BTF_INFO_KIND(type(id).info);
    return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
  }

  // Names and qualifiers looked through.
  [[nodiscard]] uint32_t strip(uint32_t id) const {
    for (uint32_t depth = 0; depth < kDepthMax; ++depth) {
      const uint32_t kind = BTF_INFO_KIND(type(id).info);
      const bool is_name = kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_CONST ||
                           kind == BTF_KIND_VOLATILE || kind == BTF_KIND_RESTRICT;
      if (!is_name) break;
      id = type(id).type;
    }
    return id;
  }
};

KernelTypes::KernelTypes(std::unique_ptr<Data> data) : data_(std::move(data)) {}
KernelTypes::KernelTypes(KernelTypes&&) noexcept = default;
KernelTypes& KernelTypes::operator=(KernelTypes&&) noexcept = default;
KernelTypes::~KernelTypes() = default;

Expected<KernelTypes> KernelTypes::read() {
  auto data = std::make_unique<Data>();
  data->bytes = CLEW_TRY(read_file(kPath));
  data->index();
  return KernelTypes(std::move(data));
}

Expected<uint64_t> KernelTypes::offset_of(std::string_view record, std::string_view path) const {
  const auto found = data_->records.find(record);
  const std::string whole = fmt::format("{}.{}", record, path);
  if (found == data_->records.end()) {
    return fail(ErrorCode::NotFound, fmt::format("the kernel has no struct {}", record));
  }
  uint32_t type = found->second;
  uint64_t offset = 0;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::optional<Data::Member> one = data_->member(type, path.substr(0, dot), kDepthMax);
    if (!one) return fail(ErrorCode::NotFound, fmt::format("the kernel has no {}", whole));
    offset += one->offset;
    type = data_->strip(one->type);
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return offset;
}

Expected<uint32_t> KernelTypes::tracepoint(std::string_view name) const {
  const auto found = data_->tracepoints.find(name);
  if (found != data_->tracepoints.end()) return found->second;
  return fail(ErrorCode::NotFound, fmt::format("the kernel has no tracepoint {}", name));
}

// typedef void (*btf_trace_x)(void *, arguments…);
Expected<uint32_t> KernelTypes::tracepoint_arguments(std::string_view tracepoint_name) const {
  const uint32_t pointer = data_->strip(CLEW_TRY(tracepoint(tracepoint_name)));
  const uint32_t function = data_->strip(data_->type(pointer).type);
  const uint32_t parameters = BTF_INFO_VLEN(data_->type(function).info);
  return parameters == 0 ? 0 : parameters - 1;
}

Expected<KernelTypes::FunctionType> KernelTypes::function(std::string_view name) const {
  const auto& functions = data_->all_functions();
  const auto found = functions.find(name);
  if (found == functions.end()) {
    return fail(ErrorCode::NotFound, fmt::format("the kernel's types have no function {}", name));
  }
  const btf_type prototype = data_->type(data_->type(found->second).type);
  return FunctionType{found->second, BTF_INFO_VLEN(prototype.info), prototype.type != 0};
}

}  // namespace clew::kernel
