// SPDX-License-Identifier: Apache-2.0
// Reads ELF's sections by their offsets: the file is our own and was checked when it was built.
#include "kernel/bpf_object.h"

#include <cstring>
#include <optional>

#include <elf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/btf.h>

#include "base/assert.h"
#include "isa/opcode.h"

extern "C" {
extern const uint8_t clew_d_accessors_begin[];
extern const uint8_t clew_d_accessors_end[];
extern const uint8_t clew_d_counted_begin[];
extern const uint8_t clew_d_counted_end[];
}

namespace clew::kernel {
namespace {

constexpr uint8_t kLocalCall = BPF_PSEUDO_CALL;

// Of an object in memory: bytes at an offset, as a value or a text.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <typename Value>
  [[nodiscard]] Value at(size_t offset) const {
    CLEW_ASSERT(offset + sizeof(Value) <= bytes_.size());
    Value value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] std::string text(size_t offset) const {
    CLEW_ASSERT(offset < bytes_.size());
    const auto* begin = reinterpret_cast<const char*>(bytes_.data() + offset);
    return {begin, strnlen(begin, bytes_.size() - offset)};
  }
  [[nodiscard]] Bytes part(size_t offset, size_t size) const {
    return Bytes(bytes_.subspan(offset, size));
  }
  [[nodiscard]] size_t size() const { return bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> object) : file_(object) {}

  Expected<Functions> read() {
    const auto header = file_.at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_BPF) {
      return fail(ErrorCode::Refused, "the built-in accessors are no BPF object");
    }
    for (uint16_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(file_.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    names_ = header.e_shstrndx;
    read_functions();
    read_relocations();
    resolve_local_calls();
    read_parameters();
    Functions functions;
    for (auto& [place, function] : by_place_) {
      functions.emplace(function.name, std::move(function));
    }
    return functions;
  }

 private:
  [[nodiscard]] Bytes bytes_of(const Elf64_Shdr& section) const {
    return file_.part(section.sh_offset, section.sh_size);
  }

  [[nodiscard]] std::optional<uint32_t> find_section(std::string_view name) const {
    const Bytes names = bytes_of(sections_[names_]);
    for (uint32_t i = 1; i < sections_.size(); ++i) {
      if (names.text(sections_[i].sh_name) == name) return i;
    }
    return std::nullopt;
  }

  [[nodiscard]] const Elf64_Shdr& section(std::string_view name) const {
    const std::optional<uint32_t> index = find_section(name);
    CLEW_ASSERT(index.has_value());
    return sections_[*index];
  }

  [[nodiscard]] std::string name_of(const Elf64_Sym& symbol) const {
    return bytes_of(sections_[section(".symtab").sh_link]).text(symbol.st_name);
  }

  void read_functions() {
    const Bytes symbols = bytes_of(section(".symtab"));
    const Bytes text = bytes_of(section(".text"));
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = symbols.at<Elf64_Sym>(at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      Function function;
      function.name = name_of(symbol);
      function.is_main = function.name.starts_with("d_main_");
      function.is_callback = function.name.starts_with("d_callback_");
      for (size_t i = 0; i < symbol.st_size; i += sizeof(isa::Instruction)) {
        function.code.push_back(text.at<isa::Instruction>(symbol.st_value + i));
      }
      by_place_.emplace(symbol.st_value, std::move(function));
    }
  }

  // The function that has the byte `place` of .text.
  [[nodiscard]] std::map<uint64_t, Function>::iterator function_at(uint64_t place) {
    auto found = by_place_.upper_bound(place);
    CLEW_ASSERT(found != by_place_.begin());
    return --found;
  }

  void read_relocations() {
    const Bytes relocations = bytes_of(section(".rel.text"));
    const Bytes symbols = bytes_of(section(".symtab"));
    for (size_t at = 0; at + sizeof(Elf64_Rel) <= relocations.size(); at += sizeof(Elf64_Rel)) {
      const auto relocation = relocations.at<Elf64_Rel>(at);
      const auto symbol = symbols.at<Elf64_Sym>(ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION) continue;  // A call within .text.
      auto& [place, function] = *function_at(relocation.r_offset);
      const auto index = static_cast<uint32_t>((relocation.r_offset - place) / 8);
      const bool is_call = function.code[index].opcode == isa::kCallOpcode;
      function.references.push_back({index, is_call, name_of(symbol)});
    }
  }

  // The assembler resolves calls within .text itself.
  void resolve_local_calls() {
    for (auto& [place, function] : by_place_) {
      for (uint32_t i = 0; i < function.code.size(); ++i) {
        const isa::Instruction& one = function.code[i];
        if (one.opcode == isa::kLoad64Opcode) ++i;
        if (one.opcode != isa::kCallOpcode || one.source() != kLocalCall || is_known(function, i))
          continue;
        const auto distance = static_cast<uint64_t>(int64_t{one.immediate});
        const uint64_t target = place + (i + 1 + distance) * 8;
        const auto callee = by_place_.find(target);
        CLEW_ASSERT(callee != by_place_.end());
        function.references.push_back({i, true, callee->second.name});
      }
    }
  }

  static bool is_known(const Function& function, uint32_t instruction) {
    for (const Reference& one : function.references) {
      if (one.instruction == instruction) return true;
    }
    return false;
  }

  // How many parameters each function has, by its BTF type.
  void read_parameters() {
    const Bytes types = bytes_of(section(".BTF"));
    const auto header = types.at<btf_header>(0);
    const size_t begin = header.hdr_len + header.type_off;
    const Bytes texts = types.part(header.hdr_len + header.str_off, header.str_len);
    std::vector<btf_type> all(1);
    for (size_t at = begin; at < begin + header.type_len;) {
      all.push_back(types.at<btf_type>(at));
      at += sizeof(btf_type) + extra_bytes(all.back());
    }
    std::map<std::string, uint32_t> parameters;
    for (const btf_type& one : all) {
      if (BTF_INFO_KIND(one.info) != BTF_KIND_FUNC) continue;
      parameters[texts.text(one.name_off)] = BTF_INFO_VLEN(all[one.type].info);
    }
    for (auto& [place, function] : by_place_)
      function.parameters = parameters[function.name];
  }

  static size_t extra_bytes(const btf_type& type) {
    const size_t count = BTF_INFO_VLEN(type.info);
    switch (BTF_INFO_KIND(type.info)) {
      case BTF_KIND_INT:
      case BTF_KIND_VAR:
      case BTF_KIND_DECL_TAG:
        return 4;
      case BTF_KIND_ARRAY:
        return sizeof(btf_array);
      case BTF_KIND_STRUCT:
      case BTF_KIND_UNION:
      case BTF_KIND_DATASEC:
      case BTF_KIND_ENUM64:
        return 12 * count;
      case BTF_KIND_ENUM:
      case BTF_KIND_FUNC_PROTO:
        return 8 * count;
      default:
        return 0;
    }
  }

  Bytes file_;
  std::vector<Elf64_Shdr> sections_;
  uint32_t names_ = 0;
  std::map<uint64_t, Function> by_place_;  // By the first byte in .text.
};

}  // namespace

Expected<Functions> read_bpf_object(std::span<const uint8_t> object) {
  return Reader(object).read();
}

const Functions& accessor_functions(LoopKind loops) {
  const auto built_in = [](const uint8_t* begin, const uint8_t* end) {
    Expected<Functions> functions = read_bpf_object({begin, end});
    CLEW_ASSERT(functions.has_value());
    return std::move(*functions);
  };
  static const Functions kOpen = built_in(clew_d_accessors_begin, clew_d_accessors_end);
  static const Functions kCounted = built_in(clew_d_counted_begin, clew_d_counted_end);
  return loops == LoopKind::Open ? kOpen : kCounted;
}

}  // namespace clew::kernel
