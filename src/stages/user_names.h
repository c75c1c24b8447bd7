// Messages about a schedule that was carried out, in the words of whoever wrote it.
#pragma once

#include "stages/carry_out.h"
#include "stages/stage_schedule.h"

namespace tenon::stages {

UsersNames UsersNamesOf(const Carried& carried);

}  // namespace tenon::stages
