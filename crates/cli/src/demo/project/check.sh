# Fails where the report cannot be true: no gauge hangs 3 m below chart datum.
report=$(sh report.sh) || exit 2
echo "$report"
echo "$report" | awk '
    $2 < -3000 { print "impossible low at " $1 ": " $2 " mm"; wrong = 1 }
    END { if (!wrong) print "all lows are possible"; exit wrong }'
