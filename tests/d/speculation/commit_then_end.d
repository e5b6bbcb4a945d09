/* SPDX-License-Identifier: Apache-2.0 */
/* Speculated data comes before what END prints. */
BEGIN
{
	self->s = speculation();
	speculate(self->s);
	printf("%s %d\n", "text", 42);
}
BEGIN
{
	commit(self->s);
}
BEGIN
{
	exit(0);
}
END
{
	printf("end\n");
}
/* output:
text 42
end

*/
