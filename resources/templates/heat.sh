#!/bin/sh
# Stands for a program that is set by variables of the environment: the run time follows the steps.
steps=${STEPS:-50000}
i=0
[ "$CHECKS" = on ] && steps=$((steps * 3))
while [ "$i" -lt "$steps" ]; do i=$((i + 1)); done
echo "finished"
