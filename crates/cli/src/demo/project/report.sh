# Prints the report: station, lowest water, highest water.
LC_ALL=C awk -f report.awk data/readings.csv | LC_ALL=C sort
