// SPDX-License-Identifier: Apache-2.0
#include "target/btf_files.h"

#include "target/kernel_symbols.h"

namespace clew::target {

namespace {

Expected<const Btf*> borrow(const Expected<Btf>& kept) {
  if (!kept) return tl::unexpected(kept.error());
  return &*kept;
}

}  // namespace

Expected<const Btf*> BtfFiles::kernel() {
  if (!kernel_) kernel_.emplace(Btf::of_kernel());
  return borrow(*kernel_);
}

Expected<const Btf*> BtfFiles::module(std::string_view name) {
  if (name == kKernelModule) return kernel();
  auto found = modules_.find(name);
  if (found == modules_.end()) {
    const Btf* own = CLEW_TRY(kernel());
    found = modules_.emplace(name, Btf::of_module(name, *own)).first;
  }
  return borrow(found->second);
}

}  // namespace clew::target
