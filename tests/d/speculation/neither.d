/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: what is neither committed nor discarded is not printed. */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	printf("speculated\n");
}
BEGIN
{
	printf("done\n");
	exit(0);
}
/* output:
done

*/
