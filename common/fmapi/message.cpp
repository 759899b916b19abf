#include "common/fmapi/message.h"
