// SPDX-License-Identifier: Apache-2.0
// The providers there are, in the order in which they are asked. A KernelView must outlive those
// that take one.
#pragma once

#include <memory>

#include "kernel/providers/kernel_view.h"
#include "kernel/providers/provider.h"

namespace clew::kernel {

std::unique_ptr<Provider> make_dtrace_provider();   // BEGIN, END, ERROR
std::unique_ptr<Provider> make_profile_provider();  // profile and tick
std::unique_ptr<Provider> make_syscall_provider(KernelView& kernel);
std::unique_ptr<Provider> make_rawtp_provider(KernelView& kernel);
std::unique_ptr<Provider> make_sdt_provider(KernelView& kernel);
std::unique_ptr<Provider> make_function_provider(KernelView& kernel);  // fbt
// proc, sched, io, ip, tcp, udp, lockstat, vminfo, sysinfo
std::unique_ptr<Provider> make_derived_provider(KernelView& kernel);
std::unique_ptr<Provider> make_user_provider();  // pidN, plockstatN, USDT

}  // namespace clew::kernel
