// All public headers.
#pragma once

#include <wherry/capability.hpp>
#include <wherry/engine.hpp>
#include <wherry/error.hpp>
#include <wherry/options.hpp>
#include <wherry/registration.hpp>
#include <wherry/request.hpp>
#include <wherry/source.hpp>
