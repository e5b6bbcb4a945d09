// SPDX-License-Identifier: Apache-2.0
#include "output/d/stored_key.h"

#include <algorithm>
#include <cstring>

namespace clew::output::d {

using query::d::KeyLayout;
using query::d::RecordField;
using query::d::StoredField;
using query::d::StoredForm;

namespace {

// As much as there is room for, with a NUL behind it.
void put_text(std::string_view text, const RecordField& field, std::vector<uint8_t>& key) {
  if (field.size_bytes == 0) return;
  const size_t size = std::min<size_t>(text.size(), field.size_bytes - 1);
  std::copy_n(text.begin(), size, key.begin() + field.offset_bytes);
}

std::string_view text_of(std::span<const uint8_t> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all.substr(0, all.find('\0'));
}

uint64_t word_of(std::span<const uint8_t> bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
  return word;
}

}  // namespace

std::vector<uint8_t> whole_key(const KeyLayout& layout, std::span<const uint8_t> stored,
                               const std::function<std::string_view(uint64_t)>& name_at) {
  std::vector<uint8_t> key(layout.size_bytes);
  for (size_t i = 0; i < layout.fields.size(); ++i) {
    const RecordField& field = layout.fields[i];
    const StoredField& form = layout.stored[i];
    if (form.offset_bytes + form.size_bytes > stored.size()) break;
    const std::span<const uint8_t> bytes = stored.subspan(form.offset_bytes, form.size_bytes);
    switch (form.form) {
      case StoredForm::Whole:
        std::copy(bytes.begin(), bytes.end(), key.begin() + field.offset_bytes);
        break;
      case StoredForm::CommandName:
        put_text(text_of(bytes), field, key);
        break;
      case StoredForm::ProbeName:
        put_text(name_at(word_of(bytes)), field, key);
        break;
    }
  }
  return key;
}

}  // namespace clew::output::d
