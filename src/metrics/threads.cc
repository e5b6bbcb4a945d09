// SPDX-License-Identifier: Apache-2.0
#include "metrics/threads.h"

#include <pthread.h>

namespace clew::metrics {

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace clew::metrics
