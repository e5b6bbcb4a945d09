// SPDX-License-Identifier: Apache-2.0
#include "answer/decode.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <variant>

#include "plan/evaluate.h"

namespace clew::answer {

using aggregate::Value;
using query::Field;
using query::TypeKind;

namespace {

void put_text(std::string_view text, Value& into) {
  if (auto* const known = std::get_if<std::string>(&into)) {
    known->assign(text);
  } else {
    into.emplace<std::string>(text);
  }
}

std::string_view text_in(std::span<const uint64_t> words, const query::Type& type) {
  const std::string_view text(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  const size_t end = type.kind == TypeKind::Bytes ? type.capacity_bytes : text.find('\0');
  return text.substr(0, std::min(text.size(), end));
}

double real_of_bits(uint64_t bits, uint32_t size_bytes) {
  if (size_bytes == 4) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

}  // namespace

bool Decoder::name_field(Field field, uint64_t word, uint64_t process, Value& into) {
  switch (field) {
    case Field::Function:
      into = names_.function(word);
      return true;
    case Field::Module:
      into = names_.module(word);
      return true;
    case Field::Probe:
      into = names_.probe(word);
      return true;
    case Field::Pid:
      into = names_.pid(word);
      return true;
    case Field::ProcName:
      into = names_.process_name(word);
      return true;
    case Field::Comm:
      into = names_.thread_name(process, word);
      return true;
    case Field::Host:
      into = names_.host();
      return true;
    case Field::NodeName:
      into = names_.node_name(word);
      return true;
    case Field::Container:
      into = names_.owner(field, word).container;
      return true;
    case Field::Unit:
      into = names_.owner(field, word).unit;
      return true;
    case Field::ControlGroup:
      into = names_.owner(field, word).cgroup;
      return true;
    case Field::User:
      into = names_.owner(field, word).user;
      return true;
    case Field::Uid:
      into = uint64_t{names_.owner(field, word).uid};
      return true;
    case Field::Time:
    case Field::Tid:
    case Field::Cpu:
    case Field::Caller:
    case Field::Stack:
    case Field::UserStack:
    case Field::KernelStack:
    case Field::Argument:
    case Field::ReturnValue:
    case Field::Elapsed:
    case Field::EntryArgument:
      return false;
  }
  return false;
}

void Decoder::decode(const query::Expression& meaning, std::span<const uint64_t> words,
                     uint64_t process, Value& into) {
  const uint64_t word = words.empty() ? 0 : words[0];
  if (meaning.kind == query::ExpressionKind::Field &&
      name_field(meaning.field, word, process, into)) {
    return;
  }
  const query::Type& type = meaning.type;
  if (type.kind == TypeKind::Stack) {
    into = words.empty() ? aggregate::Stack{} : names_.stack(words);
  } else if (type.kind == TypeKind::String || type.kind == TypeKind::Bytes) {
    put_text(text_in(words, type), into);
  } else if (type.kind == TypeKind::Integer && type.is_signed) {
    into = static_cast<int64_t>(word);
  } else if (type.kind == TypeKind::Float) {
    into = real_of_bits(word, type.size_bytes);
  } else {
    into = word;
  }
}

void Decoder::make_key(Value& value, const query::Type& type) {
  if (type.kind != TypeKind::Symbol) return;
  const uint64_t address = plan::bits_of(value);
  value = type.unit == query::Unit::Address ? names_.code(address) : names_.symbol(address);
}

}  // namespace clew::answer
