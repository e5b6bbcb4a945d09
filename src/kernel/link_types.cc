// SPDX-License-Identifier: Apache-2.0
#include "kernel/link_types.h"

#include <cstring>
#include <iterator>

#include <linux/btf.h>

#include "abi/machine/window.h"

namespace clew::kernel {
namespace {

constexpr uint32_t kIntegerEncoding = 64;  // Unsigned, offset 0, 64 bits.
constexpr uint32_t kStatic = 0;
constexpr uint32_t kGlobal = 1;

constexpr uint32_t info(uint32_t kind, uint32_t count) {
  return kind << 24 | count;
}

std::vector<uint8_t> bytes_of(const std::vector<uint32_t>& types, const std::string& texts) {
  btf_header header{};
  header.magic = BTF_MAGIC;
  header.version = BTF_VERSION;
  header.hdr_len = sizeof header;
  header.type_len = static_cast<uint32_t>(types.size() * 4);
  header.str_off = header.type_len;
  header.str_len = static_cast<uint32_t>(texts.size());
  std::vector<uint8_t> bytes(sizeof header + header.type_len + header.str_len);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, types.data(), header.type_len);
  std::memcpy(bytes.data() + sizeof header + header.str_off, texts.data(), header.str_len);
  return bytes;
}

}  // namespace

std::vector<uint8_t> storage_types(size_t value_bytes) {
  constexpr uint32_t kKeyEncoding = 32;  // Unsigned, offset 0, 32 bits.
  constexpr char kTexts[] = "\0key\0value";
  constexpr uint32_t kKeyName = 1;
  constexpr uint32_t kValueName = 5;
  return bytes_of({kKeyName, info(BTF_KIND_INT, 0), 4, kKeyEncoding,  //
                   kValueName, info(BTF_KIND_STRUCT, 0), static_cast<uint32_t>(value_bytes)},
                  std::string(std::begin(kTexts), std::end(kTexts)));
}

FunctionTypes::FunctionTypes() : texts_(1, '\0') {
  number_ = put({text("uint64_t"), info(BTF_KIND_INT, 0), 8, kIntegerEncoding});
  const uint32_t window =
      put({text("MachineWindow"), info(BTF_KIND_STRUCT, 0), sizeof(abi::MachineWindow)});
  window_ = put({0, info(BTF_KIND_PTR, 0), window});
}

uint32_t FunctionTypes::add(const Function& function) {
  const bool is_static = function.is_main || function.is_callback;
  const uint32_t linkage = is_static ? kStatic : kGlobal;
  const uint32_t type = put({text(function.name), info(BTF_KIND_FUNC, linkage),
                             prototype(function.parameters, is_static)});
  if (!is_static) put({text("arg:nonnull"), info(BTF_KIND_DECL_TAG, 0), type, 0});
  return type;
}

uint32_t FunctionTypes::prototype(uint32_t parameters, bool is_static) {
  const uint32_t key = 2 * parameters + (is_static ? 1 : 0);
  const auto found = prototypes_.find(key);
  if (found != prototypes_.end()) return found->second;
  std::vector<uint32_t> words = {0, info(BTF_KIND_FUNC_PROTO, parameters), number_};
  for (uint32_t i = 0; i < parameters; ++i) {
    words.push_back(text(std::string(1, static_cast<char>('a' + i))));
    words.push_back(i == 0 && !is_static ? window_ : number_);
  }
  return prototypes_[key] = put(words);
}

uint32_t FunctionTypes::text(const std::string& text) {
  const auto offset = static_cast<uint32_t>(texts_.size());
  texts_ += text;
  texts_ += '\0';
  return offset;
}

uint32_t FunctionTypes::put(const std::vector<uint32_t>& words) {
  types_.insert(types_.end(), words.begin(), words.end());
  return ++count_;
}

std::vector<uint8_t> FunctionTypes::finish() const {
  return bytes_of(types_, texts_);
}

}  // namespace clew::kernel
