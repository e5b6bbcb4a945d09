/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 38: a table without data has its first three rows. */
BEGIN
{
	@ = lquantize(15, 0, 30, 10);
	exit(0);
}
END
{
	clear(@);
}
/* output:


           value  ------------- Distribution ------------- count    
             < 0 |                                         0        
               0 |                                         0        
              10 |                                         0        

*/
