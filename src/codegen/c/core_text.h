// The texts that emitted C carries: core.c, and the header that it includes.
#pragma once

namespace tenon::codegen {

extern const char kFfiTypesText[];
extern const char kCoreText[];

}  // namespace tenon::codegen
