#pragma once
// What the service manager is told (sd_notify); nothing where libsystemd is absent.

namespace aiq {

void notify_ready();
void notify_stopping();
void notify_watchdog();

}  // namespace aiq
