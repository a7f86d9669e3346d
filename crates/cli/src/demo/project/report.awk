# The lowest and the highest water of each station, in millimetres.
BEGIN { FS = "," }
NR == 1 { next }
{
    level = $4 + 0
    if (!($1 in low) || level < low[$1]) low[$1] = level
    if (!($1 in high) || level > high[$1]) high[$1] = level
}
END { for (station in low) print station, low[station], high[station] }
