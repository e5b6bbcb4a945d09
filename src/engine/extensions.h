// SPDX-License-Identifier: Apache-2.0
// The extensions of one query or D script: those that the request names, and of those that come
// with Clew the ones whose functions it calls.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "extension/extension.h"
#include "query/extension_source.h"

namespace clew::engine {

// Whose own functions no extension may have.
struct CallingLanguage {
  std::string_view name;  // "the query language"
  bool (*has_function)(std::string_view name);
};

class Extensions final : public query::ExtensionSource {
 public:
  // Errors: those of extension::load, and InvalidQuery when two have a function of one name.
  static Expected<Extensions> load(const std::vector<std::string>& named,
                                   extension::Library library, const CallingLanguage& language);

  const query::ExtensionFunction* find(std::string_view name) override;
  std::vector<std::string> names() override;
  // Those that were asked for or looked at so far.
  [[nodiscard]] std::span<const extension::Extension> all() const { return all_; }

 private:
  Extensions(extension::Library library, const CallingLanguage& language)
      : library_(std::move(library)), language_(language) {}
  Expected<void> add(extension::Extension extension);
  [[nodiscard]] const query::ExtensionFunction* known(std::string_view name) const;
  void add_library();

  extension::Library library_;
  CallingLanguage language_;
  bool has_library_ = false;
  std::vector<extension::Extension> all_;
  std::deque<query::ExtensionFunction> functions_;
};

}  // namespace clew::engine
