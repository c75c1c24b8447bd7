// The calling thread's error.
#pragma once

namespace tenon::runtime {

/// Sets the thread's error: in this copy of the core, in TVM-FFI where that is in the process, and
/// where others may look for it (TellError in host.h). Cuts the message after kMessageBytes.
void SetError(const char* kind, const char* message);
/// SetError, and -1, for the end of a failing function.
int Fail(const char* kind, const char* message);
/// In this copy alone.
void SetLocalError(const char* kind, const char* message);
/// The message of the thread's last error in this copy ("" where there was none); *out_kind its
/// kind.
const char* LastError(const char** out_kind);

}  // namespace tenon::runtime
