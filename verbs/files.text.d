
${now}
{
	trunc(@opens, ${take});
	printf("${page}%-16s %5s  %-72s %8s\n", "PROGRAM", "ERRNO", "OPENED", "TIMES");
	printa("%-16s %5d  %-72s %@8d\n", @opens);
	printf("\n%-16s %-65s %12s %12s\n", "PROGRAM", "FILE", "READ", "WRITTEN");
	printa("%-16s %-65s %@12d %@12d\n", @read, @written);
	trunc(@opens);
	trunc(@bytes);
	trunc(@read);
	trunc(@written);
}
