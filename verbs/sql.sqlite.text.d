
${now}
{
	printf("${page}%8s %14s %12s  %s\n", "TIMES", "TIME(ns)", "LONGEST(ns)", "STATEMENT");
	printa("%@8d %@14d %@12d  %s\n", @calls, @nanoseconds, @longest);
	trunc(@calls);
	trunc(@nanoseconds);
	trunc(@longest);
}
