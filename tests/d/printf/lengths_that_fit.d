/* A prefix of the length wants an integer of that length; without one every integer will do. */
BEGIN
{
	printf("%hd %hu %hx\n", (short)-2, (unsigned short)65535, (short)-1);
	printf("%ld %lu %lx\n", (long)-2, (unsigned long)7, (unsigned long)255);
	printf("%lld %llu %llx\n", (long long)-2, (unsigned long long)7, (int64_t)255);
	printf("%d %u %x\n", (short)-2, (unsigned short)65535, (char)-1);
	exit(0);
}
/* output:
-2 65535 ffff
-2 7 ff
-2 7 ff
-2 65535 ff

*/
