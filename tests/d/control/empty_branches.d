/* SPDX-License-Identifier: Apache-2.0 */
/* Branches may be empty. */
BEGIN
{
	if (1) {
	} else {
		printf("wrong\n");
	}
	printf("done\n");
	exit(0);
}
/* output:
done

*/
