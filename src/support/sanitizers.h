// TN_ASAN and TN_TSAN: defined in builds with Clang's or GCC's sanitizer of addresses or of
// threads.
#pragma once

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define TN_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TN_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(TN_ASAN)
#define TN_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(TN_TSAN)
#define TN_TSAN 1
#endif
