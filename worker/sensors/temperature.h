/* temperature.h: sensors of the processors. */
#ifndef RV_WORKER_SENSORS_TEMPERATURE_H
#define RV_WORKER_SENSORS_TEMPERATURE_H

/* Returns the hottest processor sensor of ROOT/sys/class/hwmon, or else of ROOT/sys/class/thermal,
 * in degrees Celsius; NaN: there is none. Sensors of disks, boards and GPUs do not count. */
double temperature_cpu_celsius(const char *root);

#endif
