/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the base may be negative. */
BEGIN
{
	@ = lquantize(-7, -10, 10, 5);
	@ = lquantize(0, -10, 10, 5);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
           < -10 |                                         0        
             -10 |@@@@@@@@@@@@@@@@@@@@                     1        
              -5 |                                         0        
               0 |@@@@@@@@@@@@@@@@@@@@                     1        
               5 |                                         0        

*/
