// The calling thread's error.
#pragma once

namespace tenon::runtime {

/// Sets the thread's error, TVM-FFI's too where it is in the process. Cuts the message after
/// kMessageBytes.
void SetError(const char* kind, const char* message);
/// SetError, and -1, for the end of a failing function.
int Fail(const char* kind, const char* message);
/// The message of the thread's last error ("" where there was none); *out_kind its kind.
const char* LastError(const char** out_kind);

/// The error slot of this copy of the core, without TVM-FFI's and without a host's.
void SetLocalError(const char* kind, const char* message);
const char* LastLocalError(const char** out_kind);

}  // namespace tenon::runtime
